// Idea: a block has 320 columns, so A is read from L2 and split once for all of them.
// From the rung before: tiles five times as wide, with eight parts of k, not two; a
// warp copies, two split A, five warpgroups share their work, and three products of
// parts are made, not four.
// Requires: sm_90a.
#include "wide.cuh"
