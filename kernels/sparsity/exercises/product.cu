// One warp multiplies 16 x 64 sparse halves, stored as 16 x 32, with 64 x 8 halves,
// which are stored by columns. One register of metadata per lane is enough for both
// products. As it is, the kernel stops after the first.
constexpr int kThreads = 32;

extern "C" __global__ void product(const unsigned* __restrict__ values,
                                   const unsigned* __restrict__ metadata,
                                   const unsigned* __restrict__ b,
                                   float* __restrict__ c)
{
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    const unsigned* const upper = values + g * 16;  // a row has 16 pairs
    const unsigned* const lower = values + (g + 8) * 16;
    const unsigned* const column = b + g * 32;  // a column has 32 pairs
    const unsigned e = metadata[lane];
    float d[4] = {};
    asm volatile(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3},"
        " %12, 0x0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(upper[t]), "r"(lower[t]), "r"(upper[t + 4]), "r"(lower[t + 4]),
          "r"(column[t]), "r"(column[t + 4]), "r"(column[t + 8]), "r"(column[t + 12]),
          "r"(e));
    // TODO: add the product over the other 32 of k.
    for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
}
