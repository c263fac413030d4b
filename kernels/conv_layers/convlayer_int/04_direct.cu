// Idea: windows in registers: the rung `direct` of the float32 ladder, for integers.
// From the rung before: a thread has sums for four maps x 4 x 4 pixels; multiply-adds,
// no longer loads, set the time.
// Requires: as direct.
#include "../convlayer/09_direct.cu"
