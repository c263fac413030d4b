// Idea: the copy engine brings the next planes while this thread block computes.
// From the rung before: tensor maps: no addresses and no bounds for a warp to compute,
// and zeros outside the volume come from the engine.
// Requires: compute capability 9.0; rows of a multiple of 16 bytes.
#include "../../common/hopper/tma.cuh"
#include "sums.cuh"

constexpr int kBytes = 2 * kEdge * kEdge * static_cast<int>(sizeof(float));

template <int K>
__global__ void __launch_bounds__(kThreads, 2)
    fft_conv3d_boxes(const __grid_constant__ TensorMap map,
                     const float* __restrict__ source,
                     const float* __restrict__ weights,
                     const float2* __restrict__ spectra, float* __restrict__ target,
                     int n, int planes)
{
    constexpr int kKept = kEdge - K + 1;
    // A box begins at a multiple of 16 bytes in its row, so tiles are whole float4s apart.
    constexpr int kWide = kKept / 4 * 4, kLead = (K / 2 + 3) / 4 * 4;
    extern __shared__ __align__(128) float2 shared[];
    float2* const pairs = shared;
    float2* const kernel_spectra = shared + kPairs * kPair;
    const int warp = threadIdx.x / kEdge, lane = threadIdx.x % kEdge;
    Barrier* const arrived =
        reinterpret_cast<Barrier*>(kernel_spectra + K * kOwners) + warp;
    const int row = blockIdx.y * kKept, col = blockIdx.x * kWide - kLead + K / 2,
              begin = blockIdx.z * planes, end = min(begin + planes, n);
    float2* const own_pair = pairs + warp * kPair;
    // Starts the copy of the warp's pair of planes for the step that begins at plane z.
    const auto fetch = [&](int z) {
        z += 2 * warp;
        if (lane == 0 && z < end + K / 2) {
            mbarrier_arrive_expect(arrived, kBytes);
            tma_load(own_pair, map, col - K / 2, row - K / 2, z, arrived);
        }
    };
    if (lane == 0) {
        mbarrier_init(arrived, 1);
        fence_mbarrier_init();
    }
    __syncwarp();
    fetch(begin - K / 2);
    for (int i = threadIdx.x; i < K * kOwners; i += kThreads) {
        kernel_spectra[i] = spectra[i];
    }
    bool strange = false;
    Sums<K> sums[kSlots] = {};
    unsigned parity = 0;
    for (int z = begin - K / 2; z < end + K / 2; z += 2 * kPairs, parity ^= 1) {
        const int count = min(kPairs, (end + K / 2 - z + 1) / 2);
        float2 v[kEdge];
        if (warp < count) {
            mbarrier_wait(arrived, parity);
            const float* const raw = reinterpret_cast<const float*>(own_pair) + lane;
#pragma unroll
            for (int y = 0; y < kEdge; ++y) {
                v[y] = {raw[y * kEdge], raw[(y + kEdge) * kEdge]};
            }
            __syncwarp();  // all lanes have read before the spectrum replaces the box
            transform(own_pair, v);
        }
        __syncthreads();  // the spectra of all pairs are complete
        sum_planes<K>(pairs, kernel_spectra, sums, count);
        __syncthreads();  // all outputs of this step are complete
        const Place to = {z + 2 * warp - K / 2, row, col};
        const bool a = to.z >= begin && to.z < end,
                   b = to.z + 1 >= begin && to.z + 1 < end;
        const auto fetch_next = [&] {
            fence_proxy_async();
            __syncwarp();  // all lanes have read before the engine writes
            fetch(z + 2 * kPairs);
            __syncwarp();
        };
        if (a || b) {
            transform_back<kKept>(v, own_pair, fetch_next);
            strange |= store_columns<kKept, kWide>(target, n, to, a, b, v);
        } else {
            fetch_next();
        }
    }
    if (__syncthreads_or(strange)) {
        mend<K, kWide>(target, source, weights, n, {begin, row, col}, end - begin);
    }
}
