// Sums of the planes' spectra along z: each thread acts for kSlots owners.
#pragma once
#include "tiles.cuh"

constexpr int kThreads = 256;
constexpr int kPairs = kThreads / kEdge;    // pairs of planes per step: one per warp
constexpr int kSlots = kOwners / kThreads;  // owners per thread

// Copies the spectra of the weights' planes to shared memory: K loads per thread, all
// in flight at once. Both arrays are aligned to 16 bytes. `from` is not restrict: see
// wait_for_launch_before.
template <int K>
__device__ __forceinline__ void copy_spectra(float2* __restrict__ to,
                                             const float2* from)
{
    static_assert(kOwners == 2 * kThreads, "a thread copies two owners of each plane");
    float4 two[K];
#pragma unroll
    for (int j = 0; j < K; ++j) {
        two[j] = reinterpret_cast<const float4*>(from)[j * kThreads + threadIdx.x];
    }
#pragma unroll
    for (int j = 0; j < K; ++j) {
        reinterpret_cast<float4*>(to)[j * kThreads + threadIdx.x] = two[j];
    }
}

// One owner's sums of the outputs that still need planes.
template <int K>
struct Sums {
    float2 of[K - 1];
};

// Adds the spectrum of one more plane; returns the output that it completes.
template <int K>
__device__ __forceinline__ float2 add_plane(Sums<K>& sums, const float2 (&h)[K],
                                            const float (&h_imag)[K], float2 x)
{
    float2 done;
#pragma unroll
    for (int j = 0; j < K; ++j) {
        const float2 before = j < K - 1 ? sums.of[j] : float2{};
        const float2 after = {fmaf(-h[j].y, x.y, fmaf(h[j].x, x.x, before.x)),
                              fmaf(h[j].y, x.x, fmaf(h_imag[j], x.y, before.y))};
        (j == 0 ? done : sums.of[j > 0 ? j - 1 : 0]) = after;
    }
    return done;
}

// Replaces the spectra of the first `count` pairs of planes with those of the outputs
// that they complete. kStride: the distance between pairs in complex numbers. kOwn: the
// owner may have frequencies that are their own opposites.
template <int K, int kStride, bool kOwn>
__device__ __forceinline__ void sum_planes(float2* __restrict__ pairs,
                                           const float2* __restrict__ spectra,
                                           Sums<K>& sums, int owner, int count)
{
    const Owned k = owned_by(owner);
    const bool own = kOwn && k.own_opposites;
    float2 h[K];
    float h_imag[K];  // the factor of the imaginary part
#pragma unroll
    for (int j = 0; j < K; ++j) {
        h[j] = spectra[j * kOwners + owner];
        h_imag[j] = own ? h[j].y : h[j].x;
        if (own) h[j].y = 0.0f;
    }
    float2* first = pairs + k.first_row * kPitch + k.first_col;
    float2* second = pairs + k.second_row * kPitch + k.second_col;
#pragma unroll 1
    for (int i = 0; i < count; ++i, first += kStride, second += kStride) {
        float2 a, b;
        untangle(*first, *second, own, a, b);
        a = add_plane<K>(sums, h, h_imag, a);
        b = add_plane<K>(sums, h, h_imag, b);
        tangle(a, b, own, *first, *second);
    }
}

// The same for all owners of the thread. Row 0's owners are in the first warp.
template <int K, int kStride = kPair>
__device__ __forceinline__ void sum_planes(float2* __restrict__ pairs,
                                           const float2* __restrict__ spectra,
                                           Sums<K> (&sums)[kSlots], int count)
{
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
        const int owner = threadIdx.x + slot * kThreads;
        if (slot == 0 && threadIdx.x < kEdge) {
            sum_planes<K, kStride, true>(pairs, spectra, sums[slot], owner, count);
        } else {
            sum_planes<K, kStride, false>(pairs, spectra, sums[slot], owner, count);
        }
    }
}
