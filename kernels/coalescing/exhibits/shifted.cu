// Idea: lane i reads element i + offset, so a warp's 128 bytes need not begin where a
// sector begins.
// From the rung before: the only rung; the benchmark varies the offset.
// Requires: source holds n + offset floats.
__global__ void copy_shifted(
    const float* __restrict__ source, float* __restrict__ target, int n, int offset)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        target[i] = source[i + offset];
    }
}
