// Idea: transform only planes; along z, sum directly in registers while streaming.
// From the rung before: no transform along z and no halo between tiles there: a block
// streams through its planes, and each frequency has K sums in progress.
// Requires: a block of kThreads threads; kPairs pairs of planes and the spectra of the
// weights' planes in shared memory.
#include "sums.cuh"

template <int K>
__global__ void __launch_bounds__(kThreads, 2)
    fft_conv3d_planes(const float* __restrict__ source,
                      const float* __restrict__ weights,
                      const float2* __restrict__ spectra, float* __restrict__ target,
                      int n, int planes)
{
    constexpr int kKept = kEdge - K + 1;
    extern __shared__ __align__(16) float2 shared[];
    float2* const pairs = shared;
    float2* const kernel_spectra = shared + kPairs * kPair;
    copy_spectra<K>(kernel_spectra, spectra);
    const int warp = threadIdx.x / kEdge;
    const int row = blockIdx.y * kKept, col = blockIdx.x * kKept,
              begin = blockIdx.z * planes, end = min(begin + planes, n);
    float2* const own_pair = pairs + warp * kPair;
    bool strange = false;
    Sums<K> sums[kSlots] = {};
    // Input plane z completes output plane z - K / 2.
    for (int z = begin - K / 2; z < end + K / 2; z += 2 * kPairs) {
        const int count = min(kPairs, (end + K / 2 - z + 1) / 2);
        const Place from = {z + 2 * warp, row - K / 2, col - K / 2};
        float2 v[kEdge];
        if (warp < count) {
            load_columns(v, source, n, from);
            transform(own_pair, v);
        }
        __syncthreads();  // the spectra of all pairs are complete
        sum_planes<K>(pairs, kernel_spectra, sums, count);
        __syncthreads();  // all outputs of this step are complete
        const Place to = {from.z - K / 2, row, col};
        const bool a = to.z >= begin && to.z < end,
                   b = to.z + 1 >= begin && to.z + 1 < end;
        if (a || b) {
            // All lanes have read the spectrum before the next step overwrites it.
            transform_back<kKept>(v, own_pair, [] { __syncwarp(); });
            strange |= store_columns<kKept>(target, n, to, a, b, v);
        }
    }
    if (__syncthreads_or(strange)) {
        mend<K>(target, source, weights, n, {begin, row, col}, end - begin);
    }
}
