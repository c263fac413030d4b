// Idea: a block has 320 columns, so A is read from L2 and split once for all of them.
// From the rung before: tiles five times as wide, and k in eight parts instead of two.
// One warp copies and two split A for five warpgroups, which multiply three pairs of
// parts instead of four.
// Requires: sm_90a.
#include "wide.cuh"
