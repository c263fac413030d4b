// Exhibit. Source: the rung early_release of convlayer_tensor as it was until
// 2026-11-29, made small. Two warps add up tiles that a third brings into a slot.
#include "hopper/tma.cuh"

constexpr int kAdders = 64;
constexpr int kFloats = 4;  // of a thread and a tile
constexpr int kTile = kFloats * kAdders;

__global__ void __launch_bounds__(kAdders + 32)
    add_tiles(const float* source, float* sums, int tiles)
{
    __shared__ __align__(128) float slot[kTile];
    __shared__ Barrier full, empty;
    const int thread = threadIdx.x;
    if (thread == 0) {
        mbarrier_init(&full, 1);
        mbarrier_init(&empty, kAdders / 32);
        fence_mbarrier_init();
    }
    __syncthreads();
    if (thread >= kAdders) {
        if (thread > kAdders) return;
        for (int tile = 0; tile < tiles; ++tile) {
            mbarrier_wait(&empty, tile % 2 ^ 1);
            mbarrier_arrive_expect(&full, sizeof(slot));
            bulk_load(slot, source + tile * kTile, sizeof(slot), &full);
        }
        return;
    }
    float sum = 0.0f;
    for (int tile = 0; tile < tiles; ++tile) {
        mbarrier_wait(&full, tile % 2);
        float value[kFloats];
        for (int j = 0; j < kFloats; ++j) value[j] = slot[j * kAdders + thread];
        __syncwarp();  // the whole warp has read
        if (thread % 32 == 0) mbarrier_arrive(&empty);
        for (int j = 0; j < kFloats; ++j) sum += value[j];
    }
    sums[thread] = sum;
}
