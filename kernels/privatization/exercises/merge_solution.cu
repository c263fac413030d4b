// A histogram of bytes with one copy per lane: word bin * 32 + lane. Counting is free
// of bank conflicts.
constexpr int kThreads = 256;
constexpr int kBins = 256;
constexpr int kCopies = 32;

__global__ void clear(unsigned* __restrict__ counts)
{
    counts[threadIdx.x] = 0;
}

__global__ void merged(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copies[kBins * kCopies];
    for (int word = threadIdx.x; word < kBins * kCopies; word += kThreads) {
        copies[word] = 0;
    }
    __syncthreads();  // every copy is zero before any thread counts

    const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
    for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < n;
         i += stride) {
        atomicAdd(&copies[values[i] * kCopies + threadIdx.x % kCopies], 1u);
    }
    __syncthreads();  // every value is counted before another lane's copy is read

    const int bin = threadIdx.x;
    unsigned sum = 0;
    for (int step = 0; step < kCopies; ++step) {
        // Lane l starts at copy l, in bank l, and wraps around.
        sum += copies[bin * kCopies + (bin + step) % kCopies];
    }
    atomicAdd(&counts[bin], sum);
}
