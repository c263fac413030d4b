// Two real signals a and b of 32 numbers were transformed as one complex one, a + i b.
// both[s][k] is its spectrum; store the spectra of a and b in first and second.
constexpr int kPoints = 32;

__global__ void untangle(const float2* __restrict__ both, float2* __restrict__ first,
                         float2* __restrict__ second, int signals)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= signals * kPoints) {
        return;
    }
    const float2 here = both[i];
    // TODO: correct only if b = 0. Combine it with the opposite frequency.
    first[i] = here;
    second[i] = {0.0f, 0.0f};
}
