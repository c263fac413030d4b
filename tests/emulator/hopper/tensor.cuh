// What kernels of boxes and of pixels share. RANK, of 1 to 5: the tensor's dimensions.
#pragma once

#include "ptx.cuh"

#if RANK == 1
#define PLACES "{%2}"
#elif RANK == 2
#define PLACES "{%2, %3}"
#elif RANK == 3
#define PLACES "{%2, %3, %4}"
#elif RANK == 4
#define PLACES "{%2, %3, %4, %5}"
#else
#define PLACES "{%2, %3, %4, %5, %6}"
#endif
#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define AT "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)

// A kernel that stores `bytes` of `in`, by way of shared memory, to the tensor at c.
#define STORE(name, opcode)                                                            \
    extern "C" __global__ void name(const __grid_constant__ TensorMap map,             \
                                    const unsigned char* in, int bytes, int c0,        \
                                    int c1, int c2, int c3, int c4) {                  \
        extern __shared__ __align__(1024) unsigned char shared[];                      \
        for (int i = threadIdx.x; i < bytes; i += blockDim.x) shared[i] = in[i];       \
        fence_proxy();                                                                 \
        __syncthreads();                                                               \
        if (threadIdx.x == 0) {                                                        \
            asm volatile(opcode " [%1, " PLACES "], [%0];"                             \
                         :: "r"(shared_address(shared)), "l"(&map), AT : "memory");    \
            commit();                                                                  \
            wait_reads();                                                              \
        }                                                                              \
    }
