// A slot of a ring of kStages, and the parity of the phase of its barriers.
#pragma once

template <int kStages>
struct Slot {
    int slot = 0;
    unsigned parity = 0;
    __device__ __forceinline__ void next()
    {
        if (++slot == kStages) {
            slot = 0;
            parity ^= 1;
        }
    }
};
