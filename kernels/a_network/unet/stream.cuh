// The weights of a warp, in the order in which it uses them. As soon as it has read a
// row into registers it asks for the one that will take its place: weights depend on
// nothing, so memory stays busy while blocks wait for each other. No other warp reads
// them, so no barrier is needed.
#pragma once
#include "../../common/async_copy.cuh"

constexpr int kDepth = 4;  // rows of a warp that are on their way
constexpr int kRowBytes = 2560;  // at most: 128 inputs, 5 taps

// Rows of weights that the warps of a block share out: row r is for warp r % kWarps.
struct Part {
    int from, row_step;  // of the parameters, floats
    int rows;
    int half, half_step;  // rows from `half` on lie half_step further on
    int segments, segment_step;  // a row comes in so many copies
    int pieces, piece_step;  // of a copy: of 16 bytes, or of 8 if negative
};

struct Stream {
    const Part* parts;
    const float* parameters;
    char* slots;  // of this warp
    int part, row, segment, last;
    int next, current;

    // Asks for the next copy, if there is one.
    __device__ __forceinline__ void ask()
    {
        const int lane = threadIdx.x % 32;
        while (part < last && row >= parts[part].rows) {
            ++part;
            row = threadIdx.x / 32;
        }
        if (part < last) {
            const Part& p = parts[part];
            const float* from = parameters + p.from + row * p.row_step +
                                segment * p.segment_step +
                                (row >= p.half ? p.half_step : 0);
            char* to = slots + next * kRowBytes;
            if (p.pieces > 0) {
                for (int piece = lane; piece < p.pieces; piece += 32) {
                    copy_async<4>(reinterpret_cast<float*>(to + piece * 16),
                                  from + piece * p.piece_step);
                }
            } else {
                for (int piece = lane; piece < -p.pieces; piece += 32) {
                    copy_pair_async(to + piece * 8, from + piece * p.piece_step);
                }
            }
            if (++segment == p.segments) {
                segment = 0;
                row += kWarps;
            }
        }
        close_group();
        next = (next + 1) % kDepth;
    }

    __device__ __forceinline__ static void copy_pair_async(void* to, const float* from)
    {
        asm volatile(
            "cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(to)),
            "l"(from)
            : "memory");
    }

    // Waits for the warp's next copy.
    __device__ __forceinline__ const float* wait() const
    {
        wait_for_groups<kDepth - 1>();
        __syncwarp();  // what the other lanes have copied is there too
        return reinterpret_cast<const float*>(slots + current * kRowBytes);
    }
    // All lanes have read it.
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        current = (current + 1) % kDepth;
        ask();
    }
};
