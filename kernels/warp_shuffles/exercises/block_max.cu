// The largest of the block's floats, by a tree in shared memory: correct, but with nine
// barriers. Let lanes exchange values in registers instead, so that one barrier is
// enough.
constexpr int kThreads = 256;
constexpr float kLowest = -3.4e38f;  // below every input

__global__ void block_max(
    const float* __restrict__ source, float* __restrict__ maxima, int n)
{
    __shared__ float largest[kThreads];
    const int t = threadIdx.x;
    const int i = blockIdx.x * kThreads + t;
    largest[t] = i < n ? source[i] : kLowest;
    __syncthreads();
    for (int stride = kThreads / 2; stride > 0; stride /= 2) {
        if (t < stride) {
            largest[t] = fmaxf(largest[t], largest[t + stride]);
        }
        __syncthreads();
    }
    if (t == 0) {
        maxima[blockIdx.x] = largest[0];
    }
}
