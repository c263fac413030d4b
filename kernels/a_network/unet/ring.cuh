// The weights of a block, in the order in which it uses them, through a ring of slots
// in shared memory. One warp fills slots by bulk copies as soon as they are free:
// weights depend on nothing, so memory stays busy while the other warps wait.
#pragma once
#include "../../common/hopper/tma.cuh"

struct Ring {
    char* slots;
    Barrier* full;
    Barrier* empty;
    int turn;  // chunks so far

    __device__ char* slot() const { return slots + turn % kSlots * kSlotBytes; }
    __device__ unsigned parity() const { return turn / kSlots & 1; }

    // The warp that fills: waits for the slot, and announces the bytes that will come.
    __device__ char* begin_fill(int bytes)
    {
        if (threadIdx.x % 32 == 0) {
            mbarrier_wait(empty + turn % kSlots, parity() ^ 1);
            mbarrier_arrive_expect(full + turn % kSlots, bytes);
        }
        __syncwarp();
        return slot();
    }
    __device__ Barrier* filled() const { return full + turn % kSlots; }

    // The warps that use: wait for the chunk; each of them hands it back.
    __device__ const float* wait() const
    {
        mbarrier_wait(full + turn % kSlots, parity());
        return reinterpret_cast<const float*>(slot());
    }
    __device__ void release()
    {
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(empty + turn % kSlots);
        ++turn;
    }
};

// Copies `rows` rows of `bytes`, `pitch` floats apart, to rows `apart` bytes apart.
__device__ __forceinline__ void copy_rows(char* to, int apart, const float* from,
                                          int pitch, int rows, int bytes,
                                          Barrier* barrier)
{
    for (int row = threadIdx.x % 32; row < rows; row += 32) {
        bulk_load(to + row * apart, from + static_cast<size_t>(row) * pitch, bytes,
                  barrier);
    }
}
