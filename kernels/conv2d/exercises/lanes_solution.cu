// Each row of pixels weighted with 1 4 6 4 1 over 16, with zeros beyond its ends. One
// warp computes 32 outputs of a row.
constexpr int kTaps = 5;
constexpr int kWarp = 32;

__global__ void smooth_rows(
    const float* __restrict__ image, float* __restrict__ result, int cols)
{
    const float weight[kTaps] = {1.0f / 16, 4.0f / 16, 6.0f / 16, 4.0f / 16, 1.0f / 16};
    const float* line = image + blockIdx.y * cols;
    const int lane = threadIdx.x;
    const int first = blockIdx.x * kWarp - kTaps / 2;  // the pixel that lane 0 loads
    const int c = first + lane;
    const float own = c >= 0 && c < cols ? line[c] : 0.0f;
    // The first four lanes also load the four pixels after the last lane's.
    const int further = c + kWarp;
    const float beyond = lane < kTaps - 1 && further < cols ? line[further] : 0.0f;
    float sum = 0.0f;
    for (int j = 0; j < kTaps; ++j) {
        // Lane l takes pixel l + j. If that is past the last lane, lane l + j - 32
        // holds it as `beyond`. That lane is below j: lanes below j pass on only
        // `beyond`, all others only `own`.
        const float handed = lane < j ? beyond : own;
        sum += weight[j] * __shfl_sync(0xffffffffu, handed, (lane + j) % kWarp);
    }
    const int col = blockIdx.x * kWarp + lane;
    if (col < cols) {
        result[blockIdx.y * cols + col] = sum;
    }
}
