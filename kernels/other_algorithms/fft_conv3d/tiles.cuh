// Shared by the rungs that convolve by transforms of 32 x 32 tiles of planes.
//
// Two real planes a and b are transformed as one complex plane a + i b. Its transform C
// holds both: A(k) = (C(k) + conj C(-k)) / 2 and B(k) = (C(k) - conj C(-k)) / 2 i. So a
// thread that owns frequencies k and -k has A(k) and B(k), and A(-k) and B(-k) are
// their conjugates. The four frequencies that are their own opposites have real
// spectra; an owner has two of them, one as the real and one as the imaginary part.
#pragma once
#include "../fft32.cuh"

constexpr int kEdge = 32;              // side of a tile
constexpr int kPitch = kEdge + 1;      // pitch of its rows in shared memory
constexpr int kPair = kEdge * kPitch;  // complex numbers per pair of planes
constexpr int kOwners = 512;           // owners of a plane's frequencies
constexpr unsigned kAllLanes = 0xffffffffu;

// The rows and columns of an owner's two frequencies, and whether each is its own
// opposite.
struct Owned {
    int first_row, first_col, second_row, second_col;
    bool own_opposites;
};

__device__ __forceinline__ Owned owned_by(int owner)
{
    const int row = owner / kEdge, col = owner % kEdge;
    if (row > 0) return {row, col, kEdge - row, -col & kEdge - 1, false};
    // The first 32 owners have half of row 0 and half of row 16.
    const int half = col / 16 * 16, within = col % 16;
    if (within == 0) return {half, 0, half, 16, true};
    return {half, within, half, kEdge - within, false};
}

// The spectra of A and B at the owner's frequencies, doubled unless own opposites.
__device__ __forceinline__ void untangle(float2 first, float2 second, bool own,
                                         float2& a, float2& b)
{
    a = own ? float2{first.x, second.x}
            : float2{first.x + second.x, first.y - second.y};
    b = own ? float2{first.y, second.y}
            : float2{first.y + second.y, second.x - first.x};
}

// The inverse of untangle, without its factor of two.
__device__ __forceinline__ void tangle(float2 a, float2 b, bool own, float2& first,
                                       float2& second)
{
    first = own ? float2{a.x, b.x} : float2{a.x - b.y, a.y + b.x};
    second = own ? float2{a.y, b.y} : float2{a.x + b.y, b.x - a.y};
}

// The tile of a warp's pair of planes: input plane z and the next one, and row and
// column of its first point, which may be outside the volume.
struct Place {
    int z, row, col;
};

// Loads column x of both planes in lane x, with zeros outside the volume.
__device__ __forceinline__ void load_columns(float2 (&column)[kEdge],
                                             const float* __restrict__ source, int n,
                                             Place place)
{
    const int lane = threadIdx.x % kEdge, col = place.col + lane;
    const size_t plane = static_cast<size_t>(n) * n;
    const float* const from =
        source + (static_cast<long long>(place.z) * n + place.row) * n + col;
    const bool inside = place.z >= 0 && place.z + 1 < n && place.row >= 0 &&
                        place.row + kEdge <= n && place.col >= 0 &&
                        place.col + kEdge <= n;
    if (inside) {
#pragma unroll
        for (int y = 0; y < kEdge; ++y) {
            column[y].x = from[static_cast<size_t>(y) * n];
            column[y].y = from[static_cast<size_t>(y) * n + plane];
        }
        return;
    }
    const bool a = place.z >= 0 && place.z < n && col >= 0 && col < n;
    const bool b = place.z >= -1 && place.z + 1 < n && col >= 0 && col < n;
#pragma unroll
    for (int y = 0; y < kEdge; ++y) {
        const bool within = place.row + y >= 0 && place.row + y < n;
        const long long offset = static_cast<long long>(y) * n;
        column[y].x = within && a ? from[offset] : 0.0f;
        column[y].y = within && b ? from[offset + static_cast<long long>(plane)] : 0.0f;
    }
}

// Transforms columns into the spectrum of the pair, pair[row][column], in the warp's
// part of shared memory: first columns, then, after an exchange there, rows.
__device__ __forceinline__ void transform(float2* __restrict__ pair,
                                          float2 (&v)[kEdge])
{
    const int lane = threadIdx.x % kEdge;
    fft32<-1>(v);
#pragma unroll
    for (int y = 0; y < kEdge; ++y) pair[y * kPitch + lane] = v[y];
    __syncwarp();
#pragma unroll
    for (int x = 0; x < kEdge; ++x) v[x] = pair[lane * kPitch + x];
    fft32<-1>(v);
#pragma unroll
    for (int x = 0; x < kEdge; ++x) pair[lane * kPitch + x] = v[x];
}

// The inverse of transform, for the first kKept rows and columns. Calls `when_read` as
// soon as the warp no longer needs its part of shared memory.
template <int kKept, typename WhenRead>
__device__ __forceinline__ void transform_back(float2 (&v)[kEdge],
                                               float2* __restrict__ pair,
                                               WhenRead when_read)
{
    const int lane = threadIdx.x % kEdge;
#pragma unroll
    for (int x = 0; x < kEdge; ++x) v[x] = pair[lane * kPitch + x];
    fft32<1>(v);
#pragma unroll
    for (int x = 0; x < kKept; ++x) pair[lane * kPitch + x] = v[x];
    __syncwarp();
    // Lanes from kKept on read the rest of the spectrum; their columns are not stored.
#pragma unroll
    for (int y = 0; y < kEdge; ++y) v[y] = pair[y * kPitch + lane];
    when_read();
    fft32<1>(v);
}

__device__ __forceinline__ bool is_strange(float value)
{
    return !(fabsf(value) <= 3.402823466e38f);
}

// Stores those of a pair's kKept rows and kWide columns of outputs that are inside the
// volume: plane place.z if `a`, the next if `b`. Returns whether one is not finite.
template <int kKept, int kWide = kKept>
__device__ __forceinline__ bool store_columns(float* __restrict__ target, int n,
                                              Place place, bool a, bool b,
                                              const float2 (&column)[kEdge])
{
    const int lane = threadIdx.x % kEdge, col = place.col + lane;
    if (lane >= kWide || col < 0 || col >= n) return false;
    const size_t plane = static_cast<size_t>(n) * n;
    float* const to =
        target + (static_cast<long long>(place.z) * n + place.row) * n + col;
    bool strange = false;
    if (a && b && place.row + kKept <= n) {
#pragma unroll
        for (int y = 0; y < kKept; ++y) {
            const size_t offset = static_cast<size_t>(y) * n;
            to[offset] = column[y].x;
            to[offset + plane] = column[y].y;
            strange |= is_strange(column[y].x) || is_strange(column[y].y);
        }
        return strange;
    }
#pragma unroll
    for (int y = 0; y < kKept; ++y) {
        const size_t offset = static_cast<size_t>(y) * n;
        const bool within = place.row + y < n;
        if (within && a) to[offset] = column[y].x;
        if (within && b) to[offset + plane] = column[y].y;
        strange |= within && (a && is_strange(column[y].x) ||
                              b && is_strange(column[y].y));
    }
    return strange;
}

// One output, term by term; value(z, y, x) is an element of the volume, zero outside.
template <int K, typename Value>
__device__ float term_by_term(Value value, const float* __restrict__ weights, int plane,
                              int row, int col)
{
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < K * K * K; ++i) {
        const int z = plane + i / (K * K) - K / 2, y = row + i / K % K - K / 2,
                  x = col + i % K - K / 2;
        sum += weights[i] * value(z, y, x);
    }
    return sum;
}

// Recomputes those of a block's outputs that are not finite, up to plane `last` - 1: a
// transform spreads a NaN, or an overflow of its own, over the whole tile; the direct
// sum does not. All threads of the block must call it, after their stores.
template <int K, int kWide, typename Value>
__device__ __forceinline__ void mend_values(float* __restrict__ target, Value value,
                                            const float* __restrict__ weights, int n,
                                            Place place, int planes, int last)
{
    constexpr int kKept = kEdge - K + 1;
#pragma unroll 1
    for (int i = threadIdx.x; i < planes * kKept * kWide; i += blockDim.x) {
        const int z = place.z + i / (kKept * kWide),
                  y = place.row + i / kWide % kKept, x = place.col + i % kWide;
        if (z < last && y < n && x >= 0 && x < n) {
            float* const to = target + (static_cast<size_t>(z) * n + y) * n + x;
            if (is_strange(*to)) *to = term_by_term<K>(value, weights, z, y, x);
        }
    }
}

// The same for a cube.
template <int K, int kWide = kEdge - K + 1>
__device__ __noinline__ void mend(float* __restrict__ target,
                                  const float* __restrict__ source,
                                  const float* __restrict__ weights, int n,
                                  Place place, int planes)
{
    const auto value = [&](int z, int y, int x) {
        const bool inside = z >= 0 && z < n && y >= 0 && y < n && x >= 0 && x < n;
        return inside ? source[(static_cast<size_t>(z) * n + y) * n + x] : 0.0f;
    };
    mend_values<K, kWide>(target, value, weights, n, place, planes, n);
}

// Fills spectra[K - 1 - dz][owner]: the conjugate spectrum of plane dz of the weights
// (the convolution is a correlation), including the scale of both transforms and of
// untangle. Own opposites are real: two in one complex number. All threads of the block
// must call it; it handles plane blockIdx.x and blockDim.x owners.
template <int K>
__device__ __forceinline__ void transform_weights(const float* __restrict__ weights,
                                                  float2* __restrict__ spectra)
{
    __shared__ float2 roots[kEdge];
    __shared__ float2 rows[K][kEdge];  // the spectra of the rows
    __shared__ float plane[K * K];
    if (threadIdx.x < kEdge) {
        const float angle = threadIdx.x / 16.0f;
        roots[threadIdx.x] = {cospif(angle), sinpif(angle)};
    }
    for (int i = threadIdx.x; i < K * K; i += blockDim.x) {
        plane[i] = weights[blockIdx.x * K * K + i];
    }
    __syncthreads();  // roots and weights are complete
    for (int i = threadIdx.x; i < K * kEdge; i += blockDim.x) {
        const int dy = i / kEdge, col = i % kEdge;
        float2 sum = {};
#pragma unroll
        for (int dx = 0; dx < K; ++dx) {
            const float2 root = roots[col * dx % kEdge];
            sum.x = fmaf(plane[dy * K + dx], root.x, sum.x);
            sum.y = fmaf(plane[dy * K + dx], root.y, sum.y);
        }
        rows[dy][col] = sum;
    }
    __syncthreads();  // the spectra of the rows are complete
    const int owner = blockIdx.y * blockDim.x + threadIdx.x;
    const Owned k = owned_by(owner);
    float2 first = {};
    float second = 0.0f;
#pragma unroll
    for (int dy = 0; dy < K; ++dy) {
        const float2 a = rows[dy][k.first_col], root = roots[k.first_row * dy % kEdge];
        first.x = fmaf(a.x, root.x, fmaf(-a.y, root.y, first.x));
        first.y = fmaf(a.x, root.y, fmaf(a.y, root.x, first.y));
        // Own opposites are in rows 0 and 16, where roots are real.
        second = fmaf(rows[dy][k.second_col].x, root.x, second);
    }
    const float scale = (k.own_opposites ? 1.0f : 0.5f) / (kEdge * kEdge);
    const float imag = k.own_opposites ? second : first.y;
    spectra[(K - 1 - blockIdx.x) * kOwners + owner] = {scale * first.x, scale * imag};
}

template <int K>
__global__ void fft_conv3d_spectra(const float* __restrict__ weights,
                                   float2* __restrict__ spectra)
{
    transform_weights<K>(weights, spectra);
}
