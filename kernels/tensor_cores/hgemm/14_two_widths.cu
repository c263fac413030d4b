// Idea: where narrower tiles fill the rounds better, take tiles of 128 x 192.
// From the rung before: large products take whichever width needs less time for all
// its rounds; all sums of the narrower tile wait in registers for the next one.
// Requires: what hgemm_balanced requires; for tiles of 128 x 192, boxes of B with 32
// rows.
#include "narrow.cuh"
