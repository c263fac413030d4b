// Two real signals a and b of 32 numbers were transformed as one complex one, a + i b.
// both[s][k] is its spectrum; first and second are to be the spectra of a and of b.
constexpr int kPoints = 32;

__global__ void untangle(const float2* __restrict__ both, float2* __restrict__ first,
                         float2* __restrict__ second, int signals)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= signals * kPoints) {
        return;
    }
    const float2 here = both[i];
    // TODO: this is the spectrum of b = 0. What does the opposite frequency say?
    first[i] = here;
    second[i] = {0.0f, 0.0f};
}
