// Four bytes in, sixteen out: the kernel widens each element, so the two accesses have
// different widths and the same index.
constexpr int kWidth = 4;

__global__ void pixels(
    const unsigned char* __restrict__ source, float* __restrict__ target, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t quads = n / kWidth;
    if (i < quads) {
        const uchar4 p = reinterpret_cast<const uchar4*>(source)[i];
        reinterpret_cast<float4*>(target)[i] =
            make_float4(0.5f * p.x, 0.5f * p.y, 0.5f * p.z, 0.5f * p.w);
    }
    const size_t tail = quads * kWidth + i;
    if (tail < n) {
        target[tail] = 0.5f * source[tail];
    }
}
