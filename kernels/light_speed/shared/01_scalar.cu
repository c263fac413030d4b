// Idea: every thread reads a tile in shared memory word by word, without conflicts.
// From the rung before: the first rung.
// Requires: a block of kThreads threads; kSteps below the quads of the tile.
constexpr int kThreads = 256;
constexpr int kQuads = 1024;  // quads of the tile, 16 KB
constexpr int kSteps = 1000;  // quads that each thread adds up
constexpr int kWidth = 4;

__global__ void shared_scalar(
    const unsigned* __restrict__ source, unsigned* __restrict__ sums)
{
    __shared__ unsigned tile[kWidth][kQuads];
    for (int q = threadIdx.x; q < kQuads; q += kThreads) {
        const uint4 value = reinterpret_cast<const uint4*>(source)[q];
        tile[0][q] = value.x;
        tile[1][q] = value.y;
        tile[2][q] = value.z;
        tile[3][q] = value.w;
    }
    __syncthreads();  // the whole tile is stored before any thread reads it
    unsigned sum = 0;
#pragma unroll 8
    for (int step = 0; step < kSteps; ++step) {
        const int q = (threadIdx.x + step) % kQuads;
        sum += (tile[0][q] + tile[1][q]) + (tile[2][q] + tile[3][q]);
    }
    sums[static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x] = sum;
}
