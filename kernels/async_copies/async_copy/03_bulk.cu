// Idea: one thread starts a bulk copy into shared memory and one out of it.
// From the rung before: one copy of kBytes per block instead of 16 bytes per thread, no
// loop; an mbarrier counts the bytes that have arrived.
// Requires: both arrays aligned to 16 bytes; blocks of kThreads threads; one block per
// kBytes.
#include "../../common/hopper/tma.cuh"

constexpr int kThreads = 32;
constexpr int kBytes = 4096;

__global__ void __launch_bounds__(kThreads) copy_bulk(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    __shared__ __align__(128) char chunk[kBytes];
    __shared__ Barrier full;
    const size_t whole = n / 4 * 16;  // bytes
    const size_t first = static_cast<size_t>(blockIdx.x) * kBytes;
    if (threadIdx.x == 0 && first < whole) {
        const int bytes = static_cast<int>(min(whole - first, size_t{kBytes}));
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
        mbarrier_arrive_expect(&full, bytes);
        bulk_load(chunk, reinterpret_cast<const char*>(source) + first, bytes, &full);
        mbarrier_wait(&full, 0);
        bulk_store(reinterpret_cast<char*>(target) + first, chunk, bytes);
        bulk_commit();
        bulk_wait_read<0>();  // the chunk is read before the block ends
    }
    const size_t last = whole / 4 + threadIdx.x;
    if (blockIdx.x == 0 && last < n) {
        target[last] = source[last];
    }
}
