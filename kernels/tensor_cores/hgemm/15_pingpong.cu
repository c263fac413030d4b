// Idea: two consumers take turns, so one stores its tile while the other multiplies.
// From the rung before: a third kernel, with one tile per consumer instead of one per
// block. It replaces tiles of 128 x 192, and those of 128 x 256 where k is short.
// Requires: what hgemm_balanced requires; for tiles of 128 x 192, boxes of B with 32
// rows.
#include "pingpong.cuh"
