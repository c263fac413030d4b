// One warp finds the index of the largest of n floats. Each lane's own search is
// correct, but the exchange between lanes is not: the value is passed on without its
// index. Among equal values, the first index counts.
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
        if (other > best) {
            best = other;
        }
    }
    if (threadIdx.x == 0) {
        *index = at;
    }
}
