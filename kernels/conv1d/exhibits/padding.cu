// Exhibit. Source: the worklog on a 1D convolution for a U-Net.
// The input goes to shared memory with one element of padding after every 32, against
// bank conflicts; the array was declared without the padding. With 512 channels of
// length 8 the last index is 4095 + 127 = 4222, and the array has 4096 elements.
constexpr int kChannels = 512, kLength = 8, kKernel = 5, kThreads = 128;
constexpr int kRowLength = kLength > kKernel ? kLength : kKernel;
constexpr int kBanks = 32;

extern "C" __global__ void load_padded(const float* __restrict__ input,
                                       float* __restrict__ output)
{
    __shared__ float staged[kChannels * kRowLength];
    for (int first = 4 * threadIdx.x; first < kChannels * kLength;
         first += 4 * kThreads) {
        const float4 four = *reinterpret_cast<const float4*>(input + first);
        float* at = staged + first + first / kBanks;
        at[0] = four.x;
        at[1] = four.y;
        at[2] = four.z;
        at[3] = four.w;
    }
    __syncthreads();  // all stores to the staged input come before the loads
    for (int i = threadIdx.x; i < kChannels * kLength; i += kThreads) {
        output[i] = staged[i + i / kBanks];
    }
}
