// Exhibit. Source: Josh Kimmel's repository cuda-kernels, conv1.cu.
// conv1 of the course report with the indices of its code. A block takes one of kChunks
// chunks of an input map, and its threads add to every output map. Maps are stored in
// chunks, weights as [input map][output map][row][column].
constexpr int kEdge = 32, kChunks = 16, kOuts = 3, kTaps = 3;
constexpr int kChunk = kEdge * kEdge / kChunks;
constexpr int kRow = kEdge / (kChunks / 2);

extern "C" __global__ void conv1(const int* __restrict__ input,
                                 const int* __restrict__ weights, int* output)
{
    __shared__ int taps[kOuts * kTaps * kTaps];
    __shared__ int chunk[kChunk];
    const int t = threadIdx.x, map = blockIdx.x / kChunks;
    if (t == 0) {
        for (int i = 0; i < kOuts * kTaps * kTaps; ++i) {
            taps[i] = weights[map * (kTaps * kTaps) + i];
        }
    }
    chunk[t] = input[blockIdx.x * kChunk + t];
    __syncthreads();

    for (int out = 0; out < kOuts; ++out) {
        int sum = 0;
        for (int down = 0; down < kTaps; ++down) {
            for (int right = 0; right < kTaps; ++right) {
                const int at = t + (down - 1) * kRow + right - 1;
                if (at >= 0 && at < kChunk) {
                    sum += chunk[at] * taps[(out * kTaps + down) * kTaps + right];
                }
            }
        }
        output[out * kEdge * kEdge + t] += sum;
    }
}
