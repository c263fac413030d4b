// Idea: split integers into 8-bit digits, whose products tensor cores add up exactly.
// From the rung before: this is the first rung: 64 output maps and 8 x 8 pixels per
// block, 32 input maps per step, as in the ladder convlayer_tensor. A step whose values
// are all in -128 to 127 takes one product; any other takes ten, of the four digits of
// 32 bits: the other six change only bits above the lowest 32, which int32 drops too.
// Requires: sm_80; a block of kThreads threads; a grid of tiles of pixels and of groups
// of output maps; dynamic shared memory for a Step.
#include "../../common/warp.cuh"

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kOuts = 16 * kWarps;
constexpr int kDepth = 32;  // input maps per step
constexpr int kTaps = 9;
constexpr int kDigits = 4;
constexpr int kSide = 8;
constexpr int kHalo = kSide + 2;
constexpr int kPixels = kHalo * kHalo;
constexpr int kWeightPitch = kDepth * kTaps + 4;
constexpr int kPixelPitch = kDepth / 4 + 4;

// d += A B of bytes, signed or unsigned: A is 16 x 32, B is 32 x 8. A register has
// bytes of four columns of A or four rows of B, where mma_f16 has a pair of halves.
__device__ __forceinline__ void mma_s8(int (&d)[4], const unsigned (&a)[4], unsigned b0,
                                       unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_u8(int (&d)[4], const unsigned (&a)[4], unsigned b0,
                                       unsigned b1)
{
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"
        " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

struct Step {
    int taps[kOuts * kWeightPitch];
    // Each word has one digit of four input maps.
    unsigned pixels[kDigits][kPixels * kPixelPitch];
};

// Digit `digit` of four values, the first value's in the lowest byte.
__device__ __forceinline__ unsigned digits_of(const int (&values)[4], int digit)
{
    const unsigned low = __byte_perm(values[0], values[1], digit | (digit + 4) << 4);
    const unsigned high = __byte_perm(values[2], values[3], digit | (digit + 4) << 4);
    return __byte_perm(low, high, 0x5410);
}

__device__ __forceinline__ bool fits(int value)
{
    return value == static_cast<signed char>(value);
}

__global__ void __launch_bounds__(kThreads)
    convlayer_int8(const int* __restrict__ input, const int* __restrict__ weights,
                   int* __restrict__ output, int n, int c_in, int c_out)
{
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    Step& shared = *reinterpret_cast<Step*>(shared_bytes);
    const int lane = threadIdx.x % kWarp;
    const int group = lane / 4;
    const int member = lane % 4;
    const int across = (n + kSide - 1) / kSide;
    const int x0 = blockIdx.x % across * kSide;
    const int y0 = blockIdx.x / across * kSide;
    const int first_out = blockIdx.y * kOuts;
    const int row = threadIdx.x / kWarp * 16 + group;
    const size_t map = static_cast<size_t>(n) * n;
    // One sum per weight of the product of two digits: 1, 2^8, 2^16, 2^24.
    int sum[kDigits][kSide][4] = {};
    for (int c = 0; c < c_in; c += kDepth) {
        bool small = true;
        __syncthreads();  // all reads of the previous maps are done
        for (int i = threadIdx.x; i < kOuts * kDepth * kTaps; i += kThreads) {
            const int out = i / (kDepth * kTaps);
            const int at = i % (kDepth * kTaps);
            const bool inside =
                first_out + out < c_out && c * kTaps + at < c_in * kTaps;
            const size_t from = static_cast<size_t>(first_out + out) * c_in + c;
            const int value = inside ? weights[from * kTaps + at] : 0;
            small = small && fits(value);
            shared.taps[out * kWeightPitch + at] = value;
        }
        for (int i = threadIdx.x; i < kPixels * kDepth / 4; i += kThreads) {
            const int four = i / kPixels;
            const int at = i % kPixels;
            const int x = x0 - 1 + at % kHalo;
            const int y = y0 - 1 + at / kHalo;
            const bool inside = x >= 0 && x < n && y >= 0 && y < n;
            int values[4];
#pragma unroll
            for (int m = 0; m < 4; ++m) {
                const int in = c + four * 4 + m;
                values[m] = inside && in < c_in ? input[in * map + y * n + x] : 0;
                small = small && fits(values[m]);
            }
#pragma unroll
            for (int d = 0; d < kDigits; ++d) {
                shared.pixels[d][at * kPixelPitch + four] = digits_of(values, d);
            }
        }
        // Taps and pixels are stored before they are read.
        const bool all_small = __syncthreads_and(small);

        for (int tap = 0; tap < kTaps; ++tap) {
            int values[4][4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int* from = shared.taps + (row + j % 2 * 8) * kWeightPitch +
                                  (j / 2 * 16 + member * 4) * kTaps + tap;
#pragma unroll
                for (int m = 0; m < 4; ++m) values[j][m] = from[m * kTaps];
            }
            const int first =
                (tap / 3 * kHalo + group + tap % 3) * kPixelPitch + member;
            if (all_small) {
                unsigned a[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) a[j] = digits_of(values[j], 0);
#pragma unroll
                for (int y = 0; y < kSide; ++y) {
                    const unsigned* b =
                        shared.pixels[0] + first + y * (kHalo * kPixelPitch);
                    mma_s8(sum[0][y], a, b[0], b[4]);
                }
            } else {
#pragma unroll
                for (int d = 0; d < kDigits; ++d) {
                    unsigned a[4];
#pragma unroll
                    for (int j = 0; j < 4; ++j) a[j] = digits_of(values[j], d);
#pragma unroll
                    for (int e = 0; e + d < kDigits; ++e) {
#pragma unroll
                        for (int y = 0; y < kSide; ++y) {
                            const unsigned* b =
                                shared.pixels[e] + first + y * (kHalo * kPixelPitch);
                            mma_u8(sum[d + e][y], a, b[0], b[4]);
                        }
                    }
                }
            }
        }
    }
#pragma unroll
    for (int y = 0; y < kSide; ++y) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int out = first_out + row + j / 2 * 8;
            const int x = x0 + member * 2 + j % 2;
            unsigned total = 0;
#pragma unroll
            for (int d = 0; d < kDigits; ++d) {
                total += static_cast<unsigned>(sum[d][y][j]) << 8 * d;
            }
            if (out < c_out && x < n && y0 + y < n) {
                output[out * map + (y0 + y) * n + x] = static_cast<int>(total);
            }
        }
    }
}
