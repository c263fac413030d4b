// Idea: one warp on every SM: does starting the whole GPU take longer than one warp?
// From the rung before: one block per SM; with only one line, most blocks read nothing.
// Requires: nothing; any grid.
__global__ void floor_every_sm(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    const size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += threads) {
        target[i] = source[i];
    }
}
