// One warp finds the index of the largest of n floats. Value and index are passed on
// together, and every lane takes part in both shuffles before comparing. Among equal
// values, the first index counts.
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void warp_argmax(
    const float* __restrict__ source, int* __restrict__ index, int n)
{
    float best = -3.4e38f;  // below every input
    int at = n;
    for (int i = threadIdx.x; i < n; i += kWarp) {
        if (source[i] > best) {
            best = source[i];
            at = i;
        }
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        const float other = __shfl_down_sync(kAllLanes, best, offset);
        const int there = __shfl_down_sync(kAllLanes, at, offset);
        if (other > best || (other == best && there < at)) {
            best = other;
            at = there;
        }
    }
    if (threadIdx.x == 0) {
        *index = at;
    }
}
