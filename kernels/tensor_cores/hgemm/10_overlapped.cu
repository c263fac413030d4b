// Idea: store half of a tile while the next one is multiplied.
// From the rung before: half of a thread's sums stay in registers, and one piece of
// them is stored through shared memory every few slices. Tiles are in persistent's
// order, but every other tile and every other group of rows runs in reverse.
// Requires: sm_90a; clusters of two blocks of kWarps warps; shared memory for a Shared;
// tensor maps of A, boxes of kRows x 64, of B, boxes of 64 x 64, and of C, boxes of 64
// x kPiece, swizzled by 128 bytes.
#include "large.cuh"
