// 2:4 pruning: of four neighbours, keep the two of largest magnitude; of equal ones,
// the first. Magnitudes are compared as integers, the bits without the sign: infinity
// and then NaN are the largest.
#pragma once

using Half = unsigned short;

constexpr int kPiece = 16;  // halves that a thread prunes at a time: 32 bytes

struct Sixteen {
    uint4 quad[2];
};

__device__ __forceinline__ Sixteen load(const Half* from)
{
    const uint4* const at = reinterpret_cast<const uint4*>(from);
    return {{at[0], at[1]}};
}

// Prunes four halves in two registers. Puts the two that stay into `kept`, and returns
// their indices, the lower one first, two bits each.
__device__ __forceinline__ unsigned prune_four(unsigned low, unsigned high,
                                               unsigned& kept)
{
    const unsigned h[4] = {low & 0xffff, low >> 16, high & 0xffff, high >> 16};
    int wins[4] = {};
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = i + 1; j < 4; ++j) {
            const bool first = (h[i] & 0x7fff) >= (h[j] & 0x7fff);
            wins[i] += first;
            wins[j] += !first;
        }
    const int a = wins[0] >= 2 ? 0 : wins[1] >= 2 ? 1 : 2;
    const int b = wins[3] >= 2 ? 3 : wins[2] >= 2 ? 2 : 1;
    const unsigned left = a == 0 ? h[0] : a == 1 ? h[1] : h[2];
    const unsigned right = b == 3 ? h[3] : b == 2 ? h[2] : h[1];
    kept = left | right << 16;
    return a | b << 2;
}

// Prunes sixteen halves to eight. Returns the metadata, four bits per four halves.
__device__ __forceinline__ unsigned prune(const Sixteen& in, uint4& kept)
{
    unsigned metadata = prune_four(in.quad[0].x, in.quad[0].y, kept.x);
    metadata |= prune_four(in.quad[0].z, in.quad[0].w, kept.y) << 4;
    metadata |= prune_four(in.quad[1].x, in.quad[1].y, kept.z) << 8;
    return metadata | prune_four(in.quad[1].z, in.quad[1].w, kept.w) << 12;
}
