// Exhibit. Source: issue 2606 of tile-ai/tilelang: metadata for tensor cores are stored
// with rows interleaved in groups of 32, even if m is not a multiple of 32.
constexpr int kGroup = 32;  // rows per interleaved group
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
