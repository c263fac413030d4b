// Idea: two blocks share a tile, half of k each, so that every SM loads less.
// From the rung before: a third kernel for products that leave SMs idle, with tiles of
// 128 x 128. The blocks of a pair only synchronise to exchange halves of their sums.
// Requires: what hgemm_balanced requires; for the new kernel k above 64, blocks of 288
// threads, shared memory for a split::Shared, and boxes of A with 128 rows.
#include "split.cuh"
