// Attention of 64 queries to 256 keys, 64 dimensions: scores by wgmma from shared
// memory, weights in registers as the first operand of the second product, whose second
// operand is transposed. While the scores of a tile become weights, those of the next
// tile are being computed.
#include "wgmma.cuh"

constexpr int Q = 64, D = 64, KEYS = 256, TILE = 64;

__device__ inline unsigned pack(float low, float high) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
__device__ inline void stage(uint4* to, const uint4* from, int rows) {
    for (int i = threadIdx.x; i < rows * 8; i += 128)
        to[i / 8 * 8 + (i % 8 ^ i / 8 % 8)] = from[i];
}

extern "C" __global__ void __launch_bounds__(128)
attention(const uint4* q, const uint4* k, const uint4* v, float* out) {
    extern __shared__ __align__(1024) uint4 s[];
    uint4 *sq = s, *sk = s + Q * 8, *sv = sk + KEYS * 8;
    int t = threadIdx.x;
    stage(sq, q + blockIdx.x * Q * 8, Q);
    stage(sk, k, KEYS);
    stage(sv, v, KEYS);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float next[32], now[32], o[32] = {}, top[2] = {-1e30f, -1e30f}, total[2] = {0, 0};
    fence();
    for (int i = 0; i < D / 16; ++i)
        multiply(next, describe(sq) + 2 * i, describe(sk) + 2 * i, i);
    close_group();
    wait_group<0>();
    for (int i = 0; i < 32; ++i)
        now[i] = next[i];
#pragma unroll 1
    for (int tile = 0; tile < KEYS / TILE; ++tile) {
        if (tile + 1 < KEYS / TILE) {
            const uint4* keys = sk + (tile + 1) * TILE * 8;
            fence();
            for (int i = 0; i < D / 16; ++i)
                multiply(next, describe(sq) + 2 * i, describe(keys) + 2 * i, i);
            close_group();
        }
        float scale[2];
        for (int half = 0; half < 2; ++half) {
            float largest = top[half];
            for (int i = 0; i < 32; ++i)
                if (i / 2 % 2 == half)
                    largest = fmaxf(largest, now[i] * 0.125f);
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
            scale[half] = __expf(top[half] - largest);
            top[half] = largest;
            total[half] *= scale[half];
        }
        unsigned weights[16];
        for (int i = 0; i < 32; i += 2) {
            int half = i / 2 % 2;
            float first = __expf(now[i] * 0.125f - top[half]);
            float second = __expf(now[i + 1] * 0.125f - top[half]);
            total[half] += first + second;
            weights[i / 2] = pack(first, second);
        }
        for (int i = 0; i < 32; ++i)
            o[i] *= scale[i / 2 % 2];
        fence();
        for (int i = 0; i < TILE / 16; ++i)
            weigh(o, weights + 4 * i, describe(sv + (tile * TILE + 16 * i) * 8));
        close_group();
        wait_group<0>();
        for (int i = 0; i < 32; ++i)
            now[i] = next[i];
    }
    for (int half = 0; half < 2; ++half) {
        total[half] += __shfl_xor_sync(~0u, total[half], 1);
        total[half] += __shfl_xor_sync(~0u, total[half], 2);
    }
    float* to = out + (blockIdx.x * Q + t / 32 * 16 + t % 32 / 4) * D + t % 4 * 2;
    for (int i = 0; i < 32; ++i)
        to[i / 2 % 2 * 8 * D + i / 4 * 8 + i % 2] = o[i] / total[i / 2 % 2];
}
