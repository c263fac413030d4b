// Idea: products that would leave SMs idle take smaller tiles.
// From the rung before: a second kernel with tiles of 64 x kCols, a block for each; its
// first copy starts before anything else. The launch chooses the kernel by size.
// Requires: what hgemm_overlapped requires, or sm_90a; blocks of 160 threads; shared
// memory for kStages SmallStages; tensor maps of A and B, boxes of 64 x 64, and of C,
// boxes of 64 x kPiece, swizzled by 128 bytes.
#include "small.cuh"
