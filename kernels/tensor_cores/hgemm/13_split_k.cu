// Idea: two blocks share a tile. Each multiplies half of k, so less has to reach an SM.
// From the rung before: a third kernel for products that leave SMs idle, with tiles of
// 128 x 128; the blocks of a pair meet only to exchange halves of their sums.
// Requires: what hgemm_balanced requires; for the new kernel k above 64, blocks of 288
// threads, shared memory for a split::Shared, and boxes of A with 128 rows.
#include "split.cuh"
