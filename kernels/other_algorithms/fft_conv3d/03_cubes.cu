// Idea: overlap-save with tiles of 32 x 32 x 32 points that never leave the SM.
// From the rung before: a product of spectra instead of direct sums: transforms of a
// tile in every direction, the product with the weights' spectrum, inverse transforms.
// Requires: a block of kThreads threads; kPairs pairs of planes in shared memory.
#include "tiles.cuh"

constexpr int kThreads = 512;
constexpr int kPairs = kThreads / kEdge;  // pairs of planes in a tile: one per warp

// Computes spectra[kz][owner] from the spectra of the weights' planes. An owner of
// frequencies that are their own opposites has two sequences along z, h and g: stores
// (h + g) / 2 here and (h - g) / 2 after all others.
template <int K>
__global__ void __launch_bounds__(kThreads)
    fft_conv3d_cube_spectra(const float2* __restrict__ planes,
                            float2* __restrict__ spectra)
{
    const int kz = blockIdx.x, owner = threadIdx.x;
    const bool own = owned_by(owner).own_opposites;
    float2 h = {}, g = {};
    for (int dz = 0; dz < K; ++dz) {
        const float2 plane = planes[(K - 1 - dz) * kOwners + owner];
        const float angle = kz * dz % kEdge / 16.0f;
        const float2 root = {cospif(angle), sinpif(angle)};
        if (own) {
            h = {fmaf(plane.x, root.x, h.x), fmaf(plane.x, root.y, h.y)};
            g = {fmaf(plane.y, root.x, g.x), fmaf(plane.y, root.y, g.y)};
        } else {
            h.x += plane.x * root.x - plane.y * root.y;
            h.y += plane.x * root.y + plane.y * root.x;
        }
    }
    float2* const to = spectra + kz * kOwners + owner;
    if (own) {
        *to = {(h.x + g.x) / 64.0f, (h.y + g.y) / 64.0f};
        spectra[kEdge * kOwners + kz * 2 + owner / 16] = {(h.x - g.x) / 64.0f,
                                                          (h.y - g.y) / 64.0f};
    } else {
        *to = {h.x / 32.0f, h.y / 32.0f};
    }
}

__device__ __forceinline__ float2 product(float2 a, float2 b)
{
    return {fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x)};
}

// Along z, in registers: transform, product, inverse transform. For two real sequences
// a and b in one complex sequence c, with factors h and g, h a + i g b is (h + g) / 2
// c(k) + (h - g) / 2 conj c(-k).
__device__ __forceinline__ void multiply(float2 (&v)[kEdge],
                                         const float2* __restrict__ spectra, int owner,
                                         bool own)
{
    fft32<-1>(v);
    if (own) {
        const float2* const extra = spectra + kEdge * kOwners + owner / 16;
#pragma unroll
        for (int k = 0; k <= kEdge / 2; ++k) {
            const int opposite = (kEdge - k) % kEdge;
            const float2 a = v[k], b = v[opposite];
            const float2 pa = product(a, spectra[k * kOwners + owner]);
            const float2 pb = product(b, spectra[opposite * kOwners + owner]);
            const float2 qa = product({b.x, -b.y}, extra[2 * k]);
            const float2 qb = product({a.x, -a.y}, extra[2 * opposite]);
            v[k] = {pa.x + qa.x, pa.y + qa.y};
            v[opposite] = {pb.x + qb.x, pb.y + qb.y};
        }
    } else {
#pragma unroll
        for (int k = 0; k < kEdge; ++k) {
            v[k] = product(v[k], spectra[k * kOwners + owner]);
        }
    }
    fft32<1>(v);
}

template <int K>
__global__ void __launch_bounds__(kThreads)
    fft_conv3d_cubes(const float* __restrict__ source,
                     const float* __restrict__ weights,
                     const float2* __restrict__ spectra, float* __restrict__ target,
                     int n)
{
    constexpr int kKept = kEdge - K + 1;
    extern __shared__ float2 pairs[];
    const int warp = threadIdx.x / kEdge;
    const Place to = {static_cast<int>(blockIdx.z) * kKept,
                      static_cast<int>(blockIdx.y) * kKept,
                      static_cast<int>(blockIdx.x) * kKept};
    float2* const own_pair = pairs + warp * kPair;
    float2 v[kEdge];
    load_columns(v, source, n,
                 {to.z + 2 * warp - K / 2, to.row - K / 2, to.col - K / 2});
    transform(own_pair, v);
    __syncthreads();  // the spectra of all planes are complete
    const Owned k = owned_by(threadIdx.x);
    float2* const first = pairs + k.first_row * kPitch + k.first_col;
    float2* const second = pairs + k.second_row * kPitch + k.second_col;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
        untangle(first[i * kPair], second[i * kPair], k.own_opposites, v[2 * i],
                 v[2 * i + 1]);
    }
    multiply(v, spectra, threadIdx.x, k.own_opposites);
#pragma unroll
    for (int i = 0; i < kKept / 2; ++i) {
        tangle(v[2 * i], v[2 * i + 1], k.own_opposites, first[i * kPair],
               second[i * kPair]);
    }
    __syncthreads();  // the spectra of all outputs are complete
    bool strange = false;
    if (2 * warp < kKept) {
        transform_back<kKept>(v, own_pair, [] {});
        const int z = to.z + 2 * warp;
        strange = store_columns<kKept>(target, n, {z, to.row, to.col}, z < n, z + 1 < n,
                                       v);
    }
    if (__syncthreads_or(strange)) mend<K>(target, source, weights, n, to, kKept);
}
