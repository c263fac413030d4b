// Idea: one thread per element; a warp loads 128 consecutive bytes of x and of y.
// From the rung before: the first rung.
// Requires: nothing.
__global__ void saxpy_scalar(
    float a, const float* __restrict__ x, const float* __restrict__ y,
    float* __restrict__ z, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = a * x[i] + y[i];
    }
}
