// The order of the list does not matter, since each entry is the index of its
// result.
constexpr int kThreads = 256;
constexpr int kWork = 200;

__device__ float work(float v)
{
    for (int k = 0; k < kWork; ++k) {
        v = 0.5f * v + 1.0f;
    }
    return v;
}

__global__ void few(const float* __restrict__ source, float* __restrict__ target, int n)
{
    __shared__ int busy[kThreads];
    __shared__ int count;
    if (threadIdx.x == 0) {
        count = 0;
    }
    __syncthreads();  // the list is empty before any thread adds to it

    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < n) {
        if (source[i] > 0.0f) {
            busy[atomicAdd(&count, 1)] = i;
        } else {
            target[i] = 0.0f;
        }
    }
    __syncthreads();  // the list is complete before any thread reads it

    if (threadIdx.x < count) {
        const int mine = busy[threadIdx.x];
        target[mine] = work(source[mine]);
    }
}
