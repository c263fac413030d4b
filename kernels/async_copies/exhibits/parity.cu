// Exhibit. Source: code that TileLang generates for a multicast copy in a loop (issue
// 2927 of tile-ai/tilelang, 2026-08-10, on an H200), rewritten as a ring of bulk copies
// whose wait takes its parity from the loop counter.
#include "hopper/tma.cuh"

constexpr int kThreads = 128;
constexpr int kStages = 4;
constexpr int kBytes = kThreads * sizeof(float4);

__global__ void __launch_bounds__(kThreads)
    copy_parity(const float4* source, float4* target, int chunks)
{
    __shared__ __align__(128) float4 slots[kStages][kThreads];
    __shared__ Barrier full[kStages];
    const auto load = [&](int chunk) {
        Barrier* barrier = full + chunk % kStages;
        mbarrier_arrive_expect(barrier, kBytes);
        bulk_load(slots[chunk % kStages], source + chunk * kThreads, kBytes, barrier);
    };
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            mbarrier_init(full + stage, 1);
        }
        fence_mbarrier_init();
        for (int chunk = 0; chunk < min(kStages, chunks); ++chunk) {
            load(chunk);
        }
    }
    __syncthreads();  // the barriers are initialised before any thread waits for them

    for (int chunk = 0; chunk < chunks; ++chunk) {
        mbarrier_wait(full + chunk % kStages, chunk & 1);
        target[chunk * kThreads + threadIdx.x] = slots[chunk % kStages][threadIdx.x];
        __syncthreads();  // all threads have read the slot before it is refilled
        if (threadIdx.x == 0 && chunk + kStages < chunks) {
            load(chunk + kStages);
        }
    }
}
