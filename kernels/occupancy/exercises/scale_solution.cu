// Multiply by a factor; a thread takes four floats, 32 apart. Two loops put the loads
// first in the source: the compiler itself cannot swap a store and a load that may
// touch the same bytes.
constexpr int kGroup = 32;
constexpr int kEach = 4;

__global__ void scale(const float* source, float* target, float factor, int n)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = thread / kGroup * kGroup * kEach + thread % kGroup;
    if (first + (kEach - 1) * kGroup < n) {
        float value[kEach];
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            value[e] = source[first + e * kGroup];
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
            target[first + e * kGroup] = factor * value[e];
        }
    } else {
        for (int i = first; i < n; i += kGroup) {
            target[i] = factor * source[i];
        }
    }
}
