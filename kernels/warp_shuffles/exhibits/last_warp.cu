// A tree whose last six steps are unrolled for the last warp: its 32 lanes run in
// lockstep, so it needs no barrier.
constexpr int kThreads = 256;

__global__ void sum_last_warp(
    const float* __restrict__ source, float* __restrict__ sums)
{
    __shared__ float partial[kThreads];
    const int t = threadIdx.x;
    partial[t] = source[blockIdx.x * kThreads + t];
    __syncthreads();
    for (int stride = kThreads / 2; stride > 32; stride /= 2) {
        if (t < stride) {
            partial[t] += partial[t + stride];
        }
        __syncthreads();
    }
    if (t < 32) {
        partial[t] += partial[t + 32];
        partial[t] += partial[t + 16];
        partial[t] += partial[t + 8];
        partial[t] += partial[t + 4];
        partial[t] += partial[t + 2];
        partial[t] += partial[t + 1];
    }
    if (t == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
