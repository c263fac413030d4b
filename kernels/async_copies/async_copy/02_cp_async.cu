// Idea: copy asynchronously to shared memory: copies in flight hold no registers.
// From the rung before: a ring of kStages asynchronous copies per thread, in a loop; a
// thread stores only what it copied itself, so no barrier is needed.
// Requires: both arrays aligned to 16 bytes; blocks of kThreads threads.
#include "../../common/async_copy.cuh"

constexpr int kThreads = 256;
constexpr int kStages = 4;
constexpr size_t kWidth = sizeof(float4) / sizeof(float);

__global__ void __launch_bounds__(kThreads) copy_cp_async(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    __shared__ float4 ring[kStages][kThreads];
    const size_t quads = n / kWidth, step = static_cast<size_t>(gridDim.x) * kThreads;
    const size_t first = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    const auto start = [&](size_t quad, int stage) {
        if (quad < quads) {
            copy_async<4>(reinterpret_cast<float*>(&ring[stage][threadIdx.x]),
                          source + quad * kWidth);
        }
        close_group();
    };
    for (int stage = 0; stage < kStages - 1; ++stage) {
        start(first + stage * step, stage);
    }
    int stage = 0;
    for (size_t quad = first; quad < quads; quad += step) {
        start(quad + (kStages - 1) * step, (stage + kStages - 1) % kStages);
        wait_for_groups<kStages - 1>();
        reinterpret_cast<float4*>(target)[quad] = ring[stage][threadIdx.x];
        stage = (stage + 1) % kStages;
    }
    if (quads * kWidth + first < n) {
        target[quads * kWidth + first] = source[quads * kWidth + first];
    }
}
