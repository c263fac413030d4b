// Pixels in, or out: what the copy engine makes of a tensor map in im2col mode. RANK: 3
// to 5.
#include "tensor.cuh"

#if RANK == 3
#define OFFSETS "{%8}"
#elif RANK == 4
#define OFFSETS "{%8, %9}"
#else
#define OFFSETS "{%8, %9, %10}"
#endif
typedef unsigned short Offset;

// Loads the pixels from c on into shared memory, and copies `bytes` of it to out.
extern "C" __global__ void load_pixels(const __grid_constant__ TensorMap map,
                                       unsigned char* out, int box, int bytes, int c0,
                                       int c1, int c2, int c3, int c4, int o0, int o1,
                                       int o2) {
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
                     ".im2col.mbarrier::complete_tx::bytes"
                     " [%0], [%1, " PLACES "], [%7], " OFFSETS ";"
                     :: "r"(shared_address(shared)), "l"(&map), AT,
                        "r"(shared_address(&full)),
                        "h"((Offset)o0), "h"((Offset)o1), "h"((Offset)o2) : "memory");
    }
    wait(&full, 0);
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = shared[i];
}

// Stores or adds pixels from c on.
#define FROM_SHARED STRING(RANK) "d.global.shared::cta."
STORE(store_pixels, "cp.async.bulk.tensor." FROM_SHARED "im2col_no_offs.bulk_group")
STORE(add_pixels,
      "cp.reduce.async.bulk.tensor." FROM_SHARED "add.im2col_no_offs.bulk_group")
