// Copies 32 rows of 64 halves through shared memory, reading fragments with ldmatrix.

// The index in the tile, counted in pieces, of a row's 16-byte piece `piece`.
__device__ __forceinline__ int place(int row, int piece)
{
    // TODO: piece p of eight rows is in the same banks. Permute each row's pieces.
    return row * 8 + piece;
}

__global__ void fragments(const uint4* __restrict__ from, unsigned* __restrict__ to)
{
    __shared__ uint4 tile[32 * 8];
    const int lane = threadIdx.x;
    from += blockIdx.x * 256;
    to += blockIdx.x * 1024;
    for (int i = lane; i < 256; i += 32) tile[place(i / 8, i % 8)] = from[i];
    __syncwarp();
    for (int piece = 0; piece < 8; ++piece) {
        unsigned r[4];
        const void* row = &tile[place(lane, piece)];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
                     : "memory");
        for (int j = 0; j < 4; ++j)
            to[(8 * j + lane / 4) * 32 + piece * 4 + lane % 4] = r[j];
    }
}
