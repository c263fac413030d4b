// Four neighbouring floats per thread: two 16-byte loads, four multiply-adds, one
// 16-byte store. The tail is handled one float at a time.
constexpr size_t kWidth = sizeof(float4) / sizeof(float);

__global__ void triad(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z,
    float a, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t quads = n / kWidth;
    if (i < quads) {
        const float4 u = reinterpret_cast<const float4*>(x)[i];
        const float4 v = reinterpret_cast<const float4*>(y)[i];
        reinterpret_cast<float4*>(z)[i] = make_float4(
            fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z), fmaf(a, u.w, v.w));
    }
    const size_t tail = quads * kWidth + i;
    if (tail < n) {
        z[tail] = fmaf(a, x[tail], y[tail]);
    }
}
