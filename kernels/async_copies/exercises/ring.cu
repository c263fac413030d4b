// y = 2 x: one thread keeps kStages chunks in flight, and all threads compute.
#include "hopper/tma.cuh"

constexpr int kThreads = 128;
constexpr int kStages = 3;
constexpr int kBytes = kThreads * sizeof(float4);

__global__ void __launch_bounds__(kThreads) ring(const float4* x, float4* y, int chunks)
{
    __shared__ __align__(128) float4 slots[kStages][kThreads];
    __shared__ Barrier full[kStages];
    const auto load = [&](int chunk) {
        Barrier* barrier = full + chunk % kStages;
        mbarrier_arrive_expect(barrier, kBytes);
        bulk_load(slots[chunk % kStages], x + chunk * kThreads, kBytes, barrier);
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
        const unsigned parity = 0;  // TODO: which phase?
        mbarrier_wait(full + chunk % kStages, parity);
        const float4 v = slots[chunk % kStages][threadIdx.x];
        y[chunk * kThreads + threadIdx.x] = {2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w};
        // TODO: what must be true before the next copy may use this slot?
        if (threadIdx.x == 0 && chunk + kStages < chunks) {
            load(chunk + kStages);
        }
    }
}
