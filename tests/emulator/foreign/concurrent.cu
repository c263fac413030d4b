#ifndef FAULT
#define FAULT 0
#endif
// Histograms: global, private per block, private per warp with signed chars, and by
// matching lanes.
extern "C" __global__ void histo_global(unsigned char *buffer, long size,
                                        unsigned int *histo) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int stride = blockDim.x * gridDim.x;
    while (i < size) {
#if FAULT == 1
        histo[buffer[i]]++;
#else
        atomicAdd(&histo[buffer[i]], 1);
#endif
        i += stride;
    }
}
extern "C" __global__ void histo_private(unsigned char *buffer, long size,
                                         unsigned int *histo) {
    __shared__ unsigned int temp[256];
    temp[threadIdx.x] = 0;
#if FAULT != 2
    __syncthreads();
#endif
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < size;
         i += blockDim.x * gridDim.x)
        atomicAdd(&temp[buffer[i]], 1);
#if FAULT != 3
    __syncthreads();
#endif
    atomicAdd(&(histo[threadIdx.x]), temp[threadIdx.x]);
}
extern "C" __global__ void histo_match(const unsigned* words, int n, unsigned* histo) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x) {
        const uchar4 quad = reinterpret_cast<const uchar4*>(words)[i];
        const unsigned char b[4] = {quad.x, quad.y, quad.z, quad.w};
        for (unsigned char value : b) {
            unsigned mates = __match_any_sync(__activemask(), value);
            if ((threadIdx.x & 31) == __ffs(mates) - 1)
                atomicAdd(histo + value, __popc(mates));
        }
    }
}

// Compaction: one atomic for the lanes that pass.
__device__ int atomicAggInc(int *ctr) {
    unsigned int active = __activemask();
    int leader = __ffs(active) - 1;
    int change = __popc(active);
    unsigned int rank = __popc(active & ((1u << (threadIdx.x % 32)) - 1));
    int warp_res;
    if (rank == 0) warp_res = atomicAdd(ctr, change);
    warp_res = __shfl_sync(active, warp_res, leader);
    return warp_res + rank;
}
extern "C" __global__ void filter_k(int *dst, int *nres, const int *src, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    if (src[i] > 0) dst[atomicAggInc(nres)] = src[i];
}

// Breadth-first: one level; whoever claims a vertex puts it in the next frontier.
struct Graph { const int *first; const int *edges; int vertices; };
extern "C" __global__ void bfs_step(Graph g, int *level, const int *frontier, int size,
                                    int *next, int *next_size, int depth) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < size) {
        int v = frontier[t];
        for (int e = g.first[v]; e < g.first[v + 1]; ++e) {
            int w = g.edges[e];
#if FAULT == 4
            if (level[w] == -1) {
                level[w] = depth + t;
                next[atomicAdd(next_size, 1)] = w;
            }
#else
            if (atomicCAS(&level[w], -1, depth) == -1)
                next[atomicAdd(next_size, 1)] = w;
#endif
        }
    }
}

// Locks. One lock, taken by one thread per block; a ticket lock; and one per bucket,
// taken by every lane.
struct Lock {
    int *mutex;
    __device__ void lock() { while (atomicCAS(mutex, 0, 1) != 0); __threadfence(); }
    __device__ void unlock() { __threadfence(); atomicExch(mutex, 0); }
};
extern "C" __global__ void locked_dot(Lock lock, const float *a, const float *b, int N,
                                      float *c) {
    __shared__ float cache[128];
    int tid = threadIdx.x + blockIdx.x * blockDim.x, cacheIndex = threadIdx.x;
    float temp = 0;
    while (tid < N) { temp += a[tid] * b[tid]; tid += blockDim.x * gridDim.x; }
    cache[cacheIndex] = temp;
    __syncthreads();
    for (int i = blockDim.x / 2; i != 0; i /= 2) {
        if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    if (cacheIndex == 0) {
#if FAULT != 5
        lock.lock();
#endif
        *c += cache[0];
#if FAULT != 5
        lock.unlock();
#endif
    }
}
extern "C" __global__ void ticket_lock(unsigned *ticket, volatile unsigned *serving,
                                       volatile int *value) {
    if (threadIdx.x == 0) {
        unsigned mine = atomicAdd(ticket, 1);
        while (*serving != mine) ;
        __threadfence();
        *value = *value * 3 + 1;
        __threadfence();
        *serving = mine + 1;
    }
}
extern "C" __global__ void bucket_locks(const int *keys, int n, int *locks, int *sums,
                                        int buckets) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int b = keys[i] % buckets;
    bool done = false;
    while (!done) {
        if (atomicCAS(&locks[b], 0, 1) == 0) {
            __threadfence();
            volatile int *sum = sums + b;
            *sum = *sum + keys[i];
            __threadfence();
#if FAULT != 6
            atomicExch(&locks[b], 0);
#endif
            done = true;
        }
    }
}
// The largest of floats by compare and swap; a list built by exchange.
__device__ float atomicMaxFloat(float *address, float val) {
    int *address_as_int = (int *)address, old = *address_as_int, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_int, assumed,
                        __float_as_int(fmaxf(val, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}
extern "C" __global__ void max_and_lists(const float *x, int n, float *best, int *heads,
                                         int *next) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicMaxFloat(best, x[i]);
        next[i] = atomicExch(&heads[i % 7], i);
    }
}
// Producer and consumer warps through a flag in shared memory.
extern "C" __global__ void hand_over(const int *in, int *out) {
    __shared__ int box[32];
    __shared__ volatile int full;
    if (threadIdx.x == 0) full = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        box[threadIdx.x] = in[threadIdx.x] * 2;
        __threadfence_block();
        __syncwarp();
        if (threadIdx.x == 0) full = 1;
    } else {
        while (!full) ;
        __threadfence_block();
        __syncwarp();
        out[threadIdx.x - 32] = box[threadIdx.x - 32];
    }
}
