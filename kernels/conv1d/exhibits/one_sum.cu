// Exhibit. Source: Desai, Part V - 1D Convolution in CUDA (Optimized), its main loop.
// A thread adds the products of all taps and channels to one variable, then the warp
// reduces it by shuffles, in every lane. How many of these additions can overlap, and
// how many FLOPs does the whole layer take?
template <int kLength, int kTaps, int kChannels>
__global__ void one_sum(const float* __restrict__ input,
                        const float* __restrict__ weight, float* __restrict__ output)
{
    constexpr int kPadding = kTaps / 2, kWindow = kLength + 2 * kPadding;
    const int first = threadIdx.x * kChannels, channels = blockDim.x * kChannels;
    float window[kChannels][kWindow] = {};
    float filter[kChannels][kTaps];
    for (int c = 0; c < kChannels; ++c) {
        for (int j = 0; j < kLength; ++j) {
            window[c][kPadding + j] = input[(first + c) * kLength + j];
        }
        for (int k = 0; k < kTaps; ++k) {
            filter[c][k] = weight[(blockIdx.x * channels + first + c) * kTaps + k];
        }
    }
    for (int p = 0; p < kLength; ++p) {
        float sum = 0.0f;
        for (int k = 0; k < kTaps; ++k) {
            for (int c = 0; c < kChannels; ++c) {
                sum += window[c][p + k] * filter[c][k];
            }
        }
        for (int offset = warpSize / 2; offset > 0; offset /= 2) {
            sum += __shfl_down_sync(0xffffffffu, sum, offset);
        }
        if (threadIdx.x % warpSize == 0) {
            atomicAdd(&output[blockIdx.x * kLength + p], sum);
        }
    }
}
