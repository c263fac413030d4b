// Idea: persistent blocks: a ring of chunks keeps loads in flight during the stores.
// From the rung before: kStages chunks per block, in a loop; a slot is refilled as soon
// as the previous chunk's store has read it.
// Requires: both arrays aligned to 16 bytes; blocks of kThreads threads and kStages *
// kBytes of shared memory.
#include "../../common/hopper/tma.cuh"

constexpr int kThreads = 32;

template <int kBytes, int kStages>
__global__ void __launch_bounds__(kThreads) copy_pipelined(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    extern __shared__ __align__(128) char ring[];
    __shared__ Barrier full[kStages];
    const size_t whole = n / 4 * 16;  // bytes
    const size_t last = whole / 4 + threadIdx.x;
    if (blockIdx.x == 0 && last < n) {
        target[last] = source[last];
    }
    if (threadIdx.x != 0) return;
    const int chunks = static_cast<int>((whole + kBytes - 1) / kBytes);
    const int step = gridDim.x;
    const auto bytes = [&](int chunk) {
        return static_cast<int>(min(whole - static_cast<size_t>(chunk) * kBytes,
                                    static_cast<size_t>(kBytes)));
    };
    const auto load = [&](int chunk, int stage) {
        if (chunk < chunks) {
            mbarrier_arrive_expect(full + stage, bytes(chunk));
            bulk_load(ring + stage * kBytes,
                      reinterpret_cast<const char*>(source) +
                          static_cast<size_t>(chunk) * kBytes,
                      bytes(chunk), full + stage);
        }
    };
    for (int stage = 0; stage < kStages; ++stage) {
        mbarrier_init(full + stage, 1);
    }
    fence_mbarrier_init();
    for (int stage = 0; stage < kStages - 1; ++stage) {
        load(blockIdx.x + stage * step, stage);
    }
    int stage = 0, parity = 0;
    for (int chunk = blockIdx.x; chunk < chunks; chunk += step) {
        mbarrier_wait(full + stage, parity);
        const size_t first = static_cast<size_t>(chunk) * kBytes;
        bulk_store(reinterpret_cast<char*>(target) + first, ring + stage * kBytes,
                   bytes(chunk));
        bulk_commit();
        bulk_wait_read<1>();  // the previous chunk has been read
        load(chunk + (kStages - 1) * step, (stage + kStages - 1) % kStages);
        stage = stage + 1 == kStages ? 0 : stage + 1;
        parity ^= stage == 0;
    }
    bulk_wait_read<0>();  // all chunks are read before the block ends
}
