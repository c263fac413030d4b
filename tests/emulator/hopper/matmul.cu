// C = A B^T of halves: a producer warp fills a ring of tiles by the copy engine, with a
// swizzle of 128 bytes; two consumer warpgroups multiply them, one product always in
// flight.
#include "ptx.cuh"
#include "wgmma.cuh"

using Half = unsigned short;
constexpr int BM = 128, BN = 64, BK = 64, STAGES = 3;
struct alignas(1024) Stage {
    Half a[BM * BK], b[BN * BK];
};

extern "C" __global__ void __launch_bounds__(384, 1)
matmul(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
       float* c, int n, int k) {
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
            Word left = describe(stages[s].a + group * 64 * BK);
            Word right = describe(stages[s].b);
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
