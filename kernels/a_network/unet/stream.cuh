// Streams a warp's weights in the order of their use. As soon as the warp has read a
// row into registers, it starts the copy that replaces it: weights depend on no
// result, so memory stays busy while blocks wait for each other. No other warp reads
// these weights, so no barrier is needed.
#pragma once
#include "../../common/async_copy.cuh"

constexpr int kDepth = 4;  // copies in flight per warp
constexpr int kRowBytes = 2560;  // the longest row: 128 inputs, 5 taps

// Rows of weights, divided up among a block's warps: row r is for warp r % kWarps.
struct Part {
    int from, row_step;  // offset in the parameters, in floats
    int rows;
    int half, half_step;  // rows from `half` on are half_step floats further on
    int segments, segment_step;  // copies per row
    int pieces, piece_step;  // pieces per copy: of 16 bytes, or of 8 if negative
};

struct Stream {
    const Part* parts;
    const float* parameters;
    char* slots;  // of this warp only
    int part, row, segment, last;
    int next, current;

    // Starts the next copy, if there is one.
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
        __syncwarp();  // the other lanes' copies have arrived too
        return reinterpret_cast<const float*>(slots + current * kRowBytes);
    }
    // Call when the warp has read the current copy.
    __device__ __forceinline__ void release()
    {
        __syncwarp();
        current = (current + 1) % kDepth;
        ask();
    }
};
