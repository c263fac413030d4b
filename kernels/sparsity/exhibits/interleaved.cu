// Exhibit. Source: issue 2606 of tile-ai/tilelang: metadata for a tensor core are put
// in an order that interleaves rows in groups of 32, also where m is no multiple of 32.
constexpr int kGroup = 32;  // rows that are interleaved
constexpr int kInterleave = 4;

extern "C" __global__ void interleave(const unsigned short* __restrict__ rows,
                                      unsigned short* __restrict__ reordered, int m,
                                      int pieces)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * pieces) return;
    const int row = i / pieces, piece = i % pieces;
    const int to = row / kGroup * kGroup + row % 8 * kInterleave + row % kGroup / 8;
    reordered[to * pieces + piece] = rows[row * pieces + piece];
}
