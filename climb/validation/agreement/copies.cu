// Asynchronous copies from global to shared memory, whose threads wait for them; some
// lanes copy no bytes and zero-fill.
// Lanes of a warp with (lane & take) == taken copy, from element
// ((((t * step) ^ flip) >> shift) & mask) + offset; of those, lanes with
// (lane & keep) == kept copy, and the others store zeros.
// Requires: a GPU of compute capability 8.0; blocks of at most 256 threads.

struct Where { int step, flip, shift, mask, offset, take, taken; };

constexpr int warp = 32;

__device__ __forceinline__ int element(const Where& w, int t) {
    return ((((t * w.step) ^ w.flip) >> w.shift) & w.mask) + w.offset;
}

__device__ __forceinline__ bool runs(const Where& w) {
    return (threadIdx.x % warp & w.take) == w.taken;
}

__device__ __forceinline__ int thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// A T of 16 bytes is copied with .cg, past the L1 cache.
template <typename T, bool some>
__global__ void global_copy(const T* __restrict__ in, T* __restrict__ out, Where w,
                            int keep, int kept) {
    __shared__ T slots[256];
    if (!runs(w)) return;
    const unsigned to =
        static_cast<unsigned>(__cvta_generic_to_shared(&slots[threadIdx.x]));
    const T* from = in + element(w, thread());
    const int bytes =
        !some || (threadIdx.x % warp & keep) == kept ? static_cast<int>(sizeof(T)) : 0;
    if constexpr (sizeof(T) == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     ::"r"(to), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;"
                     ::"r"(to), "l"(from), "r"(bytes), "n"(sizeof(T)) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[thread()] = slots[threadIdx.x];  // each thread reads only its own copy
}

// 16 bytes through the L1 cache; with scatter, past it, to slots of shared memory that
// are not adjacent.
template <bool some, bool scatter>
__global__ void global_copy_other(const float4* __restrict__ in,
                                  float4* __restrict__ out, Where w, int keep,
                                  int kept) {
    __shared__ float4 slots[512];
    if (!runs(w)) return;
    const int slot = scatter ? (threadIdx.x * 3 + 1) % 512 : threadIdx.x;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&slots[slot]));
    const float4* from = in + element(w, thread());
    const int bytes = !some || (threadIdx.x % warp & keep) == kept
                          ? static_cast<int>(sizeof(float4))
                          : 0;
    if constexpr (scatter) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     ::"r"(to), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                     ::"r"(to), "l"(from), "r"(bytes) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[thread()] = slots[slot];  // each thread reads only its own copy
}
