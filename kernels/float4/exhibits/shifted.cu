// A copy of n floats that starts `offset` floats into both arrays, 16 bytes at a time.
__global__ void shifted(const float* source, float* target, int n, int offset)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        reinterpret_cast<float4*>(target + offset)[i] =
            reinterpret_cast<const float4*>(source + offset)[i];
    }
}
