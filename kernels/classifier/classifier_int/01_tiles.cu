// Idea: a block per 32 x 32 weights, a thread per weight, an atomic per product.
// From the rung before: this is the first rung: class1 of the course report with its
// indices corrected.
// Requires: a block of kThreads threads; a grid of tiles along the inputs, the outputs
// and the batch; output is zero.
#include "../zero.cuh"

constexpr int kThreads = 1024;
constexpr int kTile = 32;
static_assert(kThreads == kTile * kTile, "a thread per weight of the tile");

// Unsigned, because products wrap around, which C++ defines only for unsigned integers.
__global__ void __launch_bounds__(kThreads)
    classifier_int_tiles(const unsigned* __restrict__ weights,
                         const unsigned* __restrict__ input,
                         unsigned* __restrict__ output, int inputs, int outputs)
{
    __shared__ unsigned part[kTile];
    const int across = threadIdx.x % kTile;
    const int i = blockIdx.x * kTile + across;
    const int row = blockIdx.y * kTile + threadIdx.x / kTile;
    const size_t sample = blockIdx.z;
    if (threadIdx.x < kTile) {
        part[across] = i < inputs ? input[sample * inputs + i] : 0;
    }
    __syncthreads();  // the tile's inputs are stored before any warp reads them
    if (row < outputs && i < inputs) {
        atomicAdd(output + sample * outputs + row,
                  weights[static_cast<size_t>(row) * inputs + i] * part[across]);
    }
}
