// Idea: 16 bytes per load: a warp takes four wavefronts of 128 bytes with one request.
// From the rung before: the words of a quad are adjacent; one load reads all four.
// Requires: a block of kThreads threads; kSteps below the quads of the tile.
constexpr int kThreads = 256;
constexpr int kQuads = 1024;  // quads of the tile, 16 KB
constexpr int kSteps = 1000;  // quads that each thread adds up

__global__ void shared_vectorised(
    const unsigned* __restrict__ source, unsigned* __restrict__ sums)
{
    __shared__ uint4 tile[kQuads];
    for (int q = threadIdx.x; q < kQuads; q += kThreads) {
        tile[q] = reinterpret_cast<const uint4*>(source)[q];
    }
    __syncthreads();  // the whole tile is stored before any thread reads it
    unsigned sum = 0;
#pragma unroll 8
    for (int step = 0; step < kSteps; ++step) {
        const uint4 value = tile[(threadIdx.x + step) % kQuads];
        sum += (value.x + value.y) + (value.z + value.w);
    }
    sums[static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x] = sum;
}
