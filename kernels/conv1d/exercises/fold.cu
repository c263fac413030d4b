// A warp adds up four columns of 32 floats, one column after the other. Correct, with
// twenty shuffles. Six are enough: after the first step, a lane need not continue with
// all four sums.
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
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
#pragma unroll
        for (int offset = kWarp / 2; offset > 0; offset /= 2) {
            sum[c] += __shfl_xor_sync(kAllLanes, sum[c], offset);
        }
        if (lane == c) {
            sums[blockIdx.x * kColumns + c] = sum[c];
        }
    }
}
