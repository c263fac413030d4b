// A warp adds up four columns of 32 floats with six shuffles: after each of the first
// two steps, a lane continues with only half of its columns.
constexpr int kWarp = 32;
constexpr int kColumns = 4;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void column_sums(const float* __restrict__ source, float* __restrict__ sums)
{
    const int lane = threadIdx.x;
    float sum[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
        sum[c] = source[(blockIdx.x * kWarp + lane) * kColumns + c];
    }
    int offset = kWarp / 2;
#pragma unroll
    for (int half = kColumns / 2; half > 0; half /= 2) {
        const bool upper = lane & offset;
#pragma unroll
        for (int c = 0; c < half; ++c) {
            const float given = upper ? sum[c] : sum[c + half];
            const float kept = upper ? sum[c + half] : sum[c];
            sum[c] = kept + __shfl_xor_sync(kAllLanes, given, offset);
        }
        offset /= 2;
    }
#pragma unroll
    for (; offset > 0; offset /= 2) {
        sum[0] += __shfl_xor_sync(kAllLanes, sum[0], offset);
    }
    if (lane % (kWarp / kColumns) == 0) {
        sums[blockIdx.x * kColumns + lane / (kWarp / kColumns)] = sum[0];
    }
}
