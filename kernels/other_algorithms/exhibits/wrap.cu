// Exhibit: convolution by tiles, in which the ends of each tile are wrong.
// The product of two spectra is a circular convolution: values past the end of a tile
// wrap around to its start. The circular sum is written out here, to make this visible.
constexpr int kEdge = 32;

__global__ void wrap(const float* __restrict__ source,
                     const float* __restrict__ weights,
                     float* __restrict__ target, int n, int k)
{
    __shared__ float tile[kEdge];
    const int step = kEdge;
    const int x = blockIdx.x * step + threadIdx.x;
    tile[threadIdx.x] = x < n ? source[x] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int d = 0; d < k; ++d) {
        sum += weights[d] * tile[(threadIdx.x + d) % kEdge];
    }
    if (threadIdx.x < step && x < n) target[x] = sum;
}
