// The sums of a block: added over its slabs, and stored by rows.
#pragma once

// `tile` has the sums of each slab by sample and by output; `sums` has those of each
// piece of the inputs (blockIdx.y) by sample of the batch and by output.
template <int kThreads, int kRows, int kSlabs, int kSamples, int kPitch>
__device__ __forceinline__ void store_by_rows(
    const float (&tile)[kSlabs][kSamples][kPitch], float* __restrict__ sums,
    int first_row, int outputs, int first_sample, int batch)
{
    for (int n = threadIdx.x; n < kRows * kSamples; n += kThreads) {
        const int r = n % kRows;
        const int s = n / kRows;
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < kSlabs; ++j) sum += tile[j][s][r];
        if (first_row + r < outputs && first_sample + s < batch) {
            sums[(static_cast<size_t>(blockIdx.y) * batch + first_sample + s) *
                     outputs +
                 first_row + r] = sum;
        }
    }
}
