// A producer warpgroup fills a ring of tiles by the copy engine; a consumer warpgroup
// doubles them. Registers move from the producer to the consumer.
#include "ptx.cuh"

constexpr int TILE = 512, STAGES = 3, BYTES = TILE * sizeof(float);

extern "C" __global__ void __launch_bounds__(256, 1)
ring(const float* in, float* out, int tiles) {
    __shared__ alignas(128) float buffer[STAGES][TILE];
    __shared__ Word full[STAGES], empty[STAGES];
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < STAGES; ++s) {
            init(&full[s], 1);
            init(&empty[s], 128);
        }
        fence_init();
    }
    __syncthreads();
    if (t / 128 == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (t == 0)
            for (int i = blockIdx.x, k = 0; i < tiles; i += gridDim.x, ++k) {
                int s = k % STAGES;
                wait(&empty[s], ~(k / STAGES) & 1);
                expect(&full[s], BYTES);
                copy_in(buffer[s], in + i * TILE, BYTES, &full[s]);
            }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        for (int i = blockIdx.x, k = 0; i < tiles; i += gridDim.x, ++k) {
            int s = k % STAGES;
            wait(&full[s], k / STAGES & 1);
            for (int j = t - 128; j < TILE; j += 128)
                out[i * TILE + j] = 2 * buffer[s][j];
            arrive(&empty[s]);
        }
    }
}
