// Idea: Winograd's F(2 x 2, 3 x 3) for every image: 16 products for four outputs.
// From the rung before: the kernel `winograd_2d` of the ladder for one image; again,
// each part of the input maps is an image.
// Requires: as winograd_2d, and c_in a multiple of 8, because a part holds whole
// stages.
#include "../convlayer/12_winograd_2d.cu"
#include "repeat.cuh"
