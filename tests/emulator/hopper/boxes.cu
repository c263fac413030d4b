// One box in, or out: what the copy engine makes of a tensor map. RANK is 1 to 5.
#include "tensor.cuh"

// Loads the box at c into shared memory, `offset` bytes after a multiple of 1024, and
// copies `bytes` from the multiple on to out.
extern "C" __global__ void load_box(const __grid_constant__ TensorMap map,
                                    unsigned char* out, int offset, int box, int bytes,
                                    int c0, int c1, int c2, int c3, int c4) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Word full;
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) shared[i] = 0xEE;
    if (threadIdx.x == 0) {
        init(&full, 1);
        fence_init();
    }
    fence_proxy();
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&full, box);
        asm volatile("cp.async.bulk.tensor." STRING(RANK) "d.shared::cluster.global"
                     ".tile.mbarrier::complete_tx::bytes [%0], [%1, " PLACES "], [%7];"
                     :: "r"(shared_address(shared + offset)), "l"(&map), AT,
                        "r"(shared_address(&full)) : "memory");
    }
    wait(&full, 0);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = shared[i];
}

#define DIMENSIONS STRING(RANK) "d.global.shared::cta."
#define REDUCE(how) \
    STORE(how##_box, "cp.reduce.async.bulk.tensor." DIMENSIONS #how ".tile.bulk_group")
STORE(store_box, "cp.async.bulk.tensor." DIMENSIONS "tile.bulk_group")
REDUCE(add)
REDUCE(min)
REDUCE(max)
REDUCE(inc)
REDUCE(dec)
REDUCE(and)
REDUCE(or)
REDUCE(xor)
