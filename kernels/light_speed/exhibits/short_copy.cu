// Exhibit: a copy that is far too fast. Find out why before you read on.
extern "C" __global__ void copy_fast(const float* source, float* target, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        target[i] = source[i];
    }
}
