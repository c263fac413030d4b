// Each side of a branch does kWork dependent multiply-adds, with its own constants: one
// side for positive values, the other for the rest.
template <int kWork>
__global__ void sides(
    const float* __restrict__ source, float* __restrict__ target, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    float v = source[i];
    if (v > 0.0f) {
#pragma unroll
        for (int k = 0; k < kWork; ++k) {
            v = __fmaf_rn(v, 0.75f, 1.0f);
        }
    } else {
#pragma unroll
        for (int k = 0; k < kWork; ++k) {
            v = __fmaf_rn(v, 0.5f, -1.0f);
        }
    }
    target[i] = v;
}
