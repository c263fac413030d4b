// Atomics that hardware treats specially, with the lanes and elements of patterns.cu;
// and atomics at the indices of a table.
// Lanes of a warp with (lane & take) == taken run them, at element
// ((((t * step) ^ flip) >> shift) & mask) + offset.
// Requires: blocks of at most 256 threads; 16 KiB of shared memory.

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

// Counts up by one and ignores the result: ptxas emits a special instruction for this
// case.
__global__ void shared_count(int* __restrict__ out, Where w) {
    extern __shared__ __align__(16) unsigned memory[];
    int* sums = reinterpret_cast<int*>(memory);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) sums[i] = 0;
    __syncthreads();  // all sums are zero before any thread adds
    if (runs(w)) atomicAdd(&sums[element(w, threadIdx.x)], 1);
    __syncthreads();  // all have counted before the sums are read
    out[thread()] = sums[threadIdx.x];
}

__global__ void shared_exchange(int* __restrict__ out, Where w) {
    extern __shared__ __align__(16) unsigned memory[];
    int* slots = reinterpret_cast<int*>(memory);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) slots[i] = 0;
    __syncthreads();  // all slots are empty before any is filled
    if (runs(w))
        out[thread()] =
            atomicExch(&slots[element(w, threadIdx.x)], int(threadIdx.x) + 1);
}

// Each lane adds at the index that a table has for it: lanes of a warp share words,
// banks and lines.
template <typename T>
__global__ void global_table(const int* __restrict__ table, T* __restrict__ out) {
    atomicAdd(&out[table[thread()]], T(1));
}

template <typename T>
__global__ void global_table_returns(const int* __restrict__ table, T* __restrict__ out,
                                     T* __restrict__ old) {
    old[thread()] = atomicAdd(&out[table[thread()]], T(1));
}
