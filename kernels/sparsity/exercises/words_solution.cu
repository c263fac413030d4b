// Metadata are stored by rows: 16 bits per 16 of k. Reorder them by lanes: for each 64
// of k and each 16 rows, there are 32 words. Word 4g + t has 16 of k from 16t: of row g
// in its lower half, of row g + 8 in its upper half.
constexpr int kThreads = 32;

// One block per 64 of k (x) and 16 rows (y); a row has `pieces` pieces of 16 bits.
extern "C" __global__ void words(const unsigned short* __restrict__ rows,
                                 unsigned* __restrict__ packed, int pieces)
{
    const int lane = threadIdx.x, slab = blockIdx.x, tile = blockIdx.y;
    const unsigned short* const mine = rows + tile * 16 * pieces + slab * 4;
    const int group = lane / 4, piece = lane % 4;
    const unsigned lower = mine[group * pieces + piece];
    const unsigned upper = mine[(group + 8) * pieces + piece];
    packed[(slab * gridDim.y + tile) * 32 + lane] = lower | upper << 16;
}
