// A tensor map whose fields a thread replaces before a copy uses it, in shared memory
// (`direct` is 0) or in global memory. Each bit of `what` is a field; `held` has room
// for a tensor map.
#include "ptx.cuh"

#define REPLACE(bit, field, kind, constraint, place, value)                            \
    if (what >> bit & 1) {                                                             \
        if (direct) asm volatile("tensormap.replace.tile." field ".global.b1024." kind \
                                 " [%0], " place "%1;"                                 \
                                 :: "l"(held), constraint(value) : "memory");          \
        else asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." kind   \
                          " [%0], " place "%1;"                                        \
                          :: "l"((unsigned long long)shared_address(copy)),            \
                             constraint(value) : "memory");                            \
    }

extern "C" __global__ void load_replaced(const __grid_constant__ TensorMap map,
                                         unsigned char* held,
                                         const unsigned char* other, unsigned char* out,
                                         int what, int direct, int bytes, int x,
                                         int y) {
    __shared__ __align__(128) unsigned char copy[128];
    __shared__ __align__(1024) unsigned char box[4096];
    __shared__ Word full;
    int t = threadIdx.x;
    copy[t] = ((const unsigned char*)&map)[t];
    held[t] = copy[t];
    for (int i = t; i < 4096; i += 128) box[i] = 0xEE;
    if (t == 0) {
        init(&full, 1);
        fence_init();
    }
    fence_proxy();
    __threadfence();
    __syncthreads();
    if (t == 0) {
        REPLACE(0, "global_address", "b64", "l", "", other)
        REPLACE(1, "global_dim", "b32", "r", "0, ", 20)
        REPLACE(2, "global_dim", "b32", "r", "1, ", 5)
        REPLACE(3, "global_stride", "b64", "l", "0, ", 256ull)
        REPLACE(4, "box_dim", "b32", "r", "1, ", 4)
        REPLACE(5, "element_stride", "b32", "r", "1, ", 2)
        REPLACE(6, "swizzle_mode", "b32", "n", "", 1)
        REPLACE(7, "fill_mode", "b32", "n", "", 1)
        REPLACE(8, "elemtype", "b32", "n", "", 10)
    }
    __syncwarp();
    if (!direct && t < 32)
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta"
                     ".tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                     :: "l"(held), "l"((unsigned long long)shared_address(copy))
                     : "memory");
    else if (t == 0)
        asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
                     :: "l"(held) : "memory");
        expect(&full, bytes);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(shared_address(box)), "l"(held), "r"(x), "r"(y),
                        "r"(shared_address(&full)) : "memory");
    }
    wait(&full, 0);
    for (int i = t; i < 4096; i += 128) out[i] = box[i];
}
