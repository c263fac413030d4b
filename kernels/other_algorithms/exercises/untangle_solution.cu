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
    const int k = i % kPoints, opposite = i - k + (kPoints - k) % kPoints;
    const float2 here = both[i], there = both[opposite];
    first[i] = {(here.x + there.x) / 2.0f, (here.y - there.y) / 2.0f};
    second[i] = {(here.y + there.y) / 2.0f, (there.x - here.x) / 2.0f};
}
