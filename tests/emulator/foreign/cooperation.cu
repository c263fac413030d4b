#ifndef FAULT
#define FAULT 0
#endif
// Blocks and warps that share out their work while they run.
__device__ unsigned load(const void* at) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(value) : "l"(at) : "memory");
    return value;
}
__device__ void store(void* at, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;"
                 :: "l"(at), "r"(value) : "memory");
}
__device__ unsigned add(unsigned* at, unsigned value) {
    unsigned old;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(old) : "l"(at), "r"(value) : "memory");
    return old;
}

// A persistent grid and its queue: a task below `depth` puts two others into it. `left`
// counts unfinished tasks.
extern "C" __global__ void work_queue(int* tasks, unsigned* head, unsigned* tail,
                                      unsigned* left, int* done, int depth) {
    __shared__ int task;
    for (;;) {
        if (threadIdx.x == 0) {
            task = -1;
            while (load(left) != 0) {
                unsigned first = load(head);
                if (first >= load(tail)) continue;
                int found = load(tasks + first);
                if (found >= 0 && atomicCAS(head, first, first + 1) == first) {
                    task = found;
                    break;
                }
            }
        }
        __syncthreads();
        const int mine = task;
        if (mine < 0) return;
        atomicAdd(done + mine % 16, 1);
        if (mine < depth && threadIdx.x < 2) {
#if FAULT != 1
            add(left, 1);
#endif
            store(tasks + add(tail, 1), 2 * mine + 1 + threadIdx.x);
        }
#if FAULT != 2
        __syncthreads();
#endif
        if (threadIdx.x == 0) add(left, ~0u);
    }
}

// Stream-K: blocks share all steps of all tiles evenly. Parts of a tile are added in
// turns, the last one first.
extern "C" __global__ void stream_k(const int* a, const int* b, int* c, int tiles,
                                    int steps, int* turns, int* partial) {
    const int t = threadIdx.x, total = tiles * steps;
    int i = total * blockIdx.x / gridDim.x;
    const int end = total * (blockIdx.x + 1) / gridDim.x;
    while (i < end) {
        const int tile = i / steps, from = i % steps, to = min(steps, from + end - i);
        int sum = 0;
        for (int k = from; k < to; ++k)
            sum += a[(tile * steps + k) * blockDim.x + t] * b[k * blockDim.x + t];
        if (to < steps) {
            if (t == 0) while (atomicAdd(turns + tile, 0) != steps - to) { }
#if FAULT != 3
            __syncthreads();
#endif
            __threadfence();
            sum += __ldcg(partial + tile * blockDim.x + t);
        }
        if (from > 0) {
            partial[tile * blockDim.x + t] = sum;
#if FAULT != 4
            __threadfence();
#endif
            __syncthreads();
            if (t == 0) atomicExch(turns + tile, steps - from);
        } else {
            c[tile * blockDim.x + t] = sum;
        }
        i += to - from;
    }
}

// One warp fills two slots, two groups of two warps empty one each; named barriers say
// whose turn it is.
extern "C" __global__ void take_turns(const float* in, float* out, int tiles) {
    __shared__ float slot[2][64];
    const int t = threadIdx.x, warp = t / 32;
    if (warp == 0) {
        for (int k = 0; k < tiles; ++k) {
            if (k >= 2) asm volatile("bar.sync %0, 96;" :: "r"(3 + k % 2) : "memory");
            for (int i = t; i < 64; i += 32) slot[k % 2][i] = in[k * 64 + i];
#if FAULT == 5
            asm volatile("bar.arrive %0, 96;" :: "r"(2 - k % 2) : "memory");
#else
            asm volatile("bar.arrive %0, 96;" :: "r"(1 + k % 2) : "memory");
#endif
        }
    } else {
        const int group = (warp - 1) / 2, at = t - 32 - 64 * group;
        for (int k = group; k < tiles; k += 2) {
            asm volatile("bar.sync %0, 96;" :: "r"(1 + k % 2) : "memory");
            float value = slot[k % 2][63 - at];
            if (k + 2 < tiles)
                asm volatile("bar.arrive %0, 96;" :: "r"(3 + k % 2) : "memory");
#if FAULT == 6
            value += 0 * slot[k % 2][at];
#endif
            out[k * 64 + at] = value;
        }
    }
}
