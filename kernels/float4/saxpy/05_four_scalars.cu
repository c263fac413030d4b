// Idea: four 4-byte loads move as many bytes as one of 16, but need no alignment.
// From the rung before: scalar accesses again, kUnroll of each array before the first
// store; arrays may begin at any element.
// Requires: a block of kThreads threads.
constexpr int kThreads = 256;
constexpr int kUnroll = 4;

__global__ void saxpy_four_scalars(
    float a, const float* __restrict__ x, const float* __restrict__ y,
    float* __restrict__ z, size_t n)
{
    const size_t first =
        static_cast<size_t>(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
    float p[kUnroll], q[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < n) {
            p[u] = x[i];
            q[u] = y[i];
        }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < n) {
            z[i] = a * p[u] + q[u];
        }
    }
}
