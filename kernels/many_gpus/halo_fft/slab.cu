// Idea: the 3D convolution by transforms of planes (fft_conv3d/boxes.cuh) for a slab of
// planes instead of a cube.
// From the rung before: source and target number their planes separately; some input
// planes may be in the memory of the neighbouring GPUs.
// Requires: as for walk_column of boxes.cuh.
#include "../../other_algorithms/fft_conv3d/boxes.cuh"

// Recomputes the outputs of a block that are not finite. plane_of(z) is the address of
// input plane z, null outside the volume.
template <int K, typename PlaneOf>
__device__ __noinline__ void mend_slab(float* __restrict__ target, PlaneOf plane_of,
                                       const float* __restrict__ weights, int n,
                                       Place place, int planes)
{
    const auto value = [&](int z, int y, int x) {
        const float* const plane = plane_of(z);
        const bool inside = plane && y >= 0 && y < n && x >= 0 && x < n;
        return inside ? plane[static_cast<size_t>(y) * n + x] : 0.0f;
    };
    mend_values<K, Box<K>::kWide>(target, value, weights, n, place, planes,
                                  place.z + planes);
}

// The map and `source` begin at the same plane, number 0, and have `depth` planes; the
// slab needs no others. Outputs `from` to `to` - 1 are computed; plane z corresponds to
// plane z + `shift` of the target.
template <int K>
__global__ void __launch_bounds__(kThreads, 2)
    fft_slab(const __grid_constant__ TensorMap map, const float* __restrict__ source,
             const float* __restrict__ weights, const float2* __restrict__ spectra,
             float* __restrict__ target, int n, int depth, int from, int to, int shift,
             int planes)
{
    const long long area = static_cast<long long>(n) * n;
    const int begin = from + blockIdx.z * planes, end = min(begin + planes, to);
    float* const shifted = target + shift * area;
    const auto load = [&](float2* pair, int box, int row, int z, Barrier* arrived) {
        tma_load(pair, map, box, row, z, arrived);
    };
    const auto plane_of = [=](int z) {
        return z >= 0 && z < depth ? source + z * area : nullptr;
    };
    const auto mend = [&](Place place) {
        mend_slab<K>(shifted, plane_of, weights, n, place, end - begin);
    };
    walk_column<K, false>(load, mend, spectra, shifted, n, begin, end);
}

// A slab of `held` planes whose halo is in the neighbours' memory. Each map covers the
// planes that its GPU owns, in boxes of one plane; each pointer is `reach` planes
// before the first of them. At an end of the volume there is no neighbour:
// `planes_before` or `planes_after` is zero, and the map is the slab's own.
template <int K>
__global__ void __launch_bounds__(kThreads, 2)
    fft_slab_peers(const __grid_constant__ TensorMap map_before,
                   const __grid_constant__ TensorMap map,
                   const __grid_constant__ TensorMap map_after,
                   const float* __restrict__ before, const float* __restrict__ source,
                   const float* __restrict__ after, int planes_before, int held,
                   int planes_after, int reach, const float* __restrict__ weights,
                   const float2* __restrict__ spectra, float* __restrict__ target,
                   int n, int planes)
{
    const long long area = static_cast<long long>(n) * n;
    const int begin = blockIdx.z * planes, end = min(begin + planes, held);
    // Without a neighbour, outside planes are outside the slab's own map, so the copy
    // engine delivers zeros.
    const int first_after = planes_after ? held : 0;
    const auto load = [&](float2* pair, int box, int row, int z, Barrier* arrived) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float2* const to = pair + i * (Box<K>::kFloats / 4);
            if (z + i < 0) {
                tma_load(to, map_before, box, row, z + i + planes_before, arrived);
            } else if (z + i < held) {
                tma_load(to, map, box, row, z + i, arrived);
            } else {
                tma_load(to, map_after, box, row, z + i - first_after, arrived);
            }
        }
    };
    const auto plane_of = [=](int z) -> const float* {
        if (z >= 0 && z < held) return source + (z + reach) * area;
        const int there = z < 0 ? z + planes_before : z - held,
                  have = z < 0 ? planes_before : planes_after;
        if (there < 0 || there >= have) return nullptr;
        return (z < 0 ? before : after) + (there + reach) * area;
    };
    const auto mend = [&](Place place) {
        mend_slab<K>(target, plane_of, weights, n, place, end - begin);
    };
    walk_column<K, false>(load, mend, spectra, target, n, begin, end);
}
