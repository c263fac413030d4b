// A copy that always copies four floats at the end, whether four are left or not.
__global__ void rounded_up(const float* source, float* target, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int quads = (n + 3) / 4;
    if (i < quads) {
        reinterpret_cast<float4*>(target)[i] =
            reinterpret_cast<const float4*>(source)[i];
    }
}
