// Idea: windows in registers, the rung `direct` of the float32 ladder, in integers.
// From the rung before: a thread has sums of four maps x 4 x 4 pixels; loads no longer
// set the time, multiply-adds do.
// Requires: as direct.
#include "../convlayer/09_direct.cu"
