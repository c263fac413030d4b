// Kernels for the occupancy profile: with any number of registers, and with static and
// dynamic shared memory.
template <int kChains>
__global__ void chains(const float* __restrict__ source, float* __restrict__ target)
{
    const size_t first =
        (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kChains;
    float x[kChains];
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
        x[c] = source[first + c];
    }
#pragma unroll 1
    for (int step = 0; step < 64; ++step) {
#pragma unroll
        for (int c = 0; c < kChains; ++c) {
            x[c] = fmaf(0.5f, x[c], 1.0f);
        }
    }
#pragma unroll
    for (int c = 0; c < kChains; ++c) {
        target[first + c] = x[c];
    }
}

// Each thread leaves a value in shared memory for its neighbour: kStatic floats
// declared here, the rest by the launch.
template <int kStatic>
__global__ void neighbours(const float* __restrict__ source, float* __restrict__ target)
{
    __shared__ float fixed[kStatic];
    extern __shared__ float given[];
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int next = (threadIdx.x + 1) % blockDim.x;
    fixed[threadIdx.x] = source[i];
    given[threadIdx.x] = 2.0f * source[i];
    __syncthreads();  // every value is stored before a neighbour reads it
    target[i] = fixed[next] + given[next];
}
