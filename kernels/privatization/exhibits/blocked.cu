// Exhibit, slow on purpose: each thread counts a run of neighbouring values, as a CPU
// thread would.
template <int kBins>
__global__ void histogram_blocked(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copy[kBins];
    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        copy[bin] = 0;
    }
    __syncthreads();  // every bin of the copy is zero before any thread counts

    const size_t threads = static_cast<size_t>(gridDim.x) * blockDim.x;
    const size_t run = (n + threads - 1) / threads;
    const size_t first =
        (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * run;
    for (size_t i = first; i < first + run && i < n; ++i) {
        if (values[i] < kBins) {
            atomicAdd(&copy[values[i]], 1u);
        }
    }
    __syncthreads();  // every value is counted before the copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        if (copy[bin] > 0) {
            atomicAdd(&counts[bin], copy[bin]);
        }
    }
}
