// Multiply by a factor; a thread takes four floats, 32 apart. Let all four loads of a
// thread be in flight before its first store.
constexpr int kGroup = 32;
constexpr int kEach = 4;

__global__ void scale(const float* source, float* target, float factor, int n)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = thread / kGroup * kGroup * kEach + thread % kGroup;
    if (first + (kEach - 1) * kGroup < n) {
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            target[first + e * kGroup] = factor * source[first + e * kGroup];
        }
    } else {
        for (int i = first; i < n; i += kGroup) {
            target[i] = factor * source[i];
        }
    }
}
