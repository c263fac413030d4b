// Zero the counts before any block adds to them, in a separate launch, because blocks
// of one launch cannot wait for each other.
template <int kBins>
__global__ void histogram_clear(unsigned* __restrict__ counts)
{
    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        counts[bin] = 0;
    }
}
