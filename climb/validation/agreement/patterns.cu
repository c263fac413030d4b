// Access patterns whose cost is checked against Nsight Compute: one access of interest
// in each kernel.
// Lanes of a warp with (lane & take) == taken run it, at element
// ((((t * step) ^ flip) >> shift) & mask) + offset.
// Requires: blocks of at most 256 threads; shared arrays of `words` 4-byte words.

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

template <typename T>
__global__ void global_load(const T* __restrict__ in, T* __restrict__ out, Where w) {
    if (!runs(w)) return;
    out[thread()] = in[element(w, thread())];
}

template <typename T>
__global__ void global_store(const T* __restrict__ in, T* __restrict__ out, Where w) {
    if (!runs(w)) return;
    out[element(w, thread())] = in[0];
}

template <typename T>
__global__ void shared_load(unsigned* __restrict__ out, Where w, int words) {
    extern __shared__ __align__(16) unsigned memory[];
    for (int i = threadIdx.x; i < words; i += blockDim.x) memory[i] = i;
    __syncthreads();  // all words are stored before any is read
    if (!runs(w)) return;
    reinterpret_cast<T*>(out)[thread()] =
        reinterpret_cast<const T*>(memory)[element(w, threadIdx.x)];
}

template <typename T>
__global__ void shared_store(const T* __restrict__ in, unsigned* __restrict__ out,
                             Where w) {
    extern __shared__ __align__(16) unsigned memory[];
    if (runs(w))
        reinterpret_cast<T*>(memory)[element(w, threadIdx.x)] = in[threadIdx.x];
    __syncthreads();  // other threads read the stored words
    out[thread()] = memory[threadIdx.x];
}

template <typename T>
__global__ void global_add(T* __restrict__ out, Where w) {
    if (runs(w)) atomicAdd(&out[element(w, thread())], T(threadIdx.x + 1));
}

template <typename T>
__global__ void global_add_returns(T* __restrict__ out, T* __restrict__ old, Where w) {
    if (runs(w))
        old[thread()] = atomicAdd(&out[element(w, thread())], T(threadIdx.x + 1));
}

__global__ void global_max(int* __restrict__ out, Where w) {
    if (runs(w)) atomicMax(&out[element(w, thread())], int(threadIdx.x));
}

__global__ void global_exchange(unsigned* __restrict__ out, unsigned* __restrict__ old,
                                Where w) {
    if (runs(w)) old[thread()] = atomicExch(&out[element(w, thread())], threadIdx.x);
}

template <typename T>
__global__ void global_compare(T* __restrict__ out, T* __restrict__ old, Where w) {
    if (runs(w))
        old[thread()] = atomicCAS(&out[element(w, thread())], T(0), T(threadIdx.x + 1));
}

template <typename T>
__global__ void shared_add(T* __restrict__ out, Where w) {
    extern __shared__ __align__(16) unsigned memory[];
    T* sums = reinterpret_cast<T*>(memory);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) sums[i] = T(0);
    __syncthreads();  // all sums are zero before any thread adds
    if (runs(w)) atomicAdd(&sums[element(w, threadIdx.x)], T(threadIdx.x + 1));
    __syncthreads();  // all have added before the sums are read
    out[thread()] = sums[threadIdx.x];
}

__global__ void shared_add_returns(int* __restrict__ out, Where w) {
    extern __shared__ __align__(16) unsigned memory[];
    int* sums = reinterpret_cast<int*>(memory);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) sums[i] = 0;
    __syncthreads();  // all sums are zero before any thread adds
    if (runs(w))
        out[thread()] = atomicAdd(&sums[element(w, threadIdx.x)], int(threadIdx.x) + 1);
}

__global__ void shared_max(int* __restrict__ out, Where w) {
    extern __shared__ __align__(16) unsigned memory[];
    int* most = reinterpret_cast<int*>(memory);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) most[i] = 0;
    __syncthreads();  // all are zero before any thread compares
    if (runs(w)) atomicMax(&most[element(w, threadIdx.x)], int(threadIdx.x));
    __syncthreads();  // all have been compared before the result is read
    out[thread()] = most[threadIdx.x];
}

template <typename T>
__global__ void shared_compare(T* __restrict__ out, Where w) {
    extern __shared__ __align__(16) unsigned memory[];
    T* slots = reinterpret_cast<T*>(memory);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) slots[i] = T(0);
    __syncthreads();  // all slots are empty before any is filled
    if (runs(w))
        out[thread()] =
            atomicCAS(&slots[element(w, threadIdx.x)], T(0), T(threadIdx.x + 1));
}

// An array in local memory: one store to each element, and a load whose index differs
// between lanes.
template <typename T, int length>
__global__ void local_array(const T* __restrict__ in, T* __restrict__ out, Where w) {
    T own[length];
    #pragma unroll 1
    for (int i = 0; i < length; ++i) own[(i * w.step) & (length - 1)] = in[i];
    if (!runs(w)) return;
    out[thread()] = own[element(w, threadIdx.x) & (length - 1)];
}
