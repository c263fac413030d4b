// Pixels take eight colours in turn, each of four floats. Each output is the sum of its
// colour's components times the pixel.
constexpr int kWarp = 32;
constexpr int kColours = 8;

// The index, among the warp's 32 pixels, of a lane's pixel: a permutation of 0 to 31.
__device__ int pixel_of(int lane)
{
    return lane % 4 * kColours + lane / 4;
}

__global__ void shade(
    const float4* __restrict__ palette, const float* __restrict__ pixels,
    float* __restrict__ out)
{
    __shared__ float4 colours[kColours];
    if (threadIdx.x < kColours) colours[threadIdx.x] = palette[threadIdx.x];
    __syncthreads();  // all colours are loaded before any is used
    const int pixel = pixel_of(threadIdx.x);
    const float4 c = colours[pixel % kColours];
    out[blockIdx.x * kWarp + pixel] =
        (c.x + c.y + c.z + c.w) * pixels[blockIdx.x * kWarp + pixel];
}
