// C = A B^T of halves: a producer warp fills a ring of tiles by the copy engine, with a swizzle
// of 128 bytes; two consumer warpgroups multiply them, one product always in flight.
#include "ptx.cuh"

using Half = unsigned short;
constexpr int BM = 128, BN = 64, BK = 64, STAGES = 3;
struct alignas(1024) Stage {
    Half a[BM * BK], b[BN * BK];
};

// K-major, swizzle of 128 bytes, 1024 bytes from eight rows to the next eight.
__device__ inline Word describe(const void* tile) {
    return shared_address(tile) >> 4 | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
__device__ inline void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void close_group() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int OPEN> __device__ inline void wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(OPEN) : "memory");
}
// 64 x 64 sums, 16 products each.
__device__ inline void multiply(float (&d)[32], Word a, Word b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29,"
                 " %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                   "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
                   "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
                   "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),
                   "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "l"(a), "l"(b) : "memory");
}

extern "C" __global__ void __launch_bounds__(384, 1)
matmul(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c,
       int n, int k) {
    extern __shared__ Stage stages[];
    __shared__ Word full[STAGES], empty[STAGES];
    int t = threadIdx.x, row = blockIdx.y * BM, column = blockIdx.x * BN;
    if (t == 0) {
        for (int s = 0; s < STAGES; ++s) {
            init(&full[s], 1);
            init(&empty[s], 2);
        }
        fence_init();
    }
    __syncthreads();
    if (t < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (t == 0)
            for (int i = 0; i < k / BK; ++i) {
                int s = i % STAGES;
                wait(&empty[s], ~(i / STAGES) & 1);
                expect(&full[s], sizeof(Stage));
                load(stages[s].a, a, i * BK, row, &full[s]);
                load(stages[s].b, b, i * BK, column, &full[s]);
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        int group = t / 128 - 1;
        float d[32] = {};
        for (int i = 0; i < k / BK; ++i) {
            int s = i % STAGES;
            wait(&full[s], i / STAGES & 1);
            Word left = describe(stages[s].a + group * 64 * BK), right = describe(stages[s].b);
            fence();
            for (int step = 0; step < BK / 16; ++step)
                multiply(d, left + 2 * step, right + 2 * step);
            close_group();
            wait_group<1>();
            if (i > 0 && t % 128 == 0)
                arrive(&empty[(i - 1) % STAGES]);
        }
        wait_group<0>();
        row += group * 64 + t % 128 / 32 * 16 + t % 32 / 4;
        column += t % 4 * 2;
        for (int i = 0; i < 32; i += 2) {
            float* to = c + (row + i / 2 % 2 * 8) * n + column + i / 4 * 8;
            *(float2*)to = make_float2(d[i], d[i + 1]);
        }
    }
}
