// Exhibit. Source: a recurrent attention kernel (issue 24 of MoonshotAI/FlashKDA,
// 2026-07-28), rewritten. A block updates a state in shared memory once for each step
// of its sequence, and one thread stores it. Sequences may be empty.
#include "hopper/tma.cuh"

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    last_state(const float* steps, const int* starts, float* states)
{
    __shared__ __align__(128) float state[kThreads];
    const int start = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    state[threadIdx.x] = 0.0f;
    __syncthreads();
    for (int step = start; step < end; ++step) {
        state[threadIdx.x] =
            0.5f * state[threadIdx.x] + steps[step * kThreads + threadIdx.x];
        fence_proxy_async();
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        bulk_store(states + blockIdx.x * kThreads, state, sizeof(state));
        bulk_commit();
        bulk_wait_read<0>();
    }
}
