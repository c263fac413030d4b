// Exhibit. Source: NVIDIA's CUDA Samples, globalToShmemAsyncCopy.
// C = A B for square matrices of side n, a multiple of 16. The tiles of several stages
// are copied asynchronously while an earlier stage is computed.
#include <cuda/pipeline>

constexpr int kTile = 16;
constexpr int kBuffers = 4;

__global__ void product(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
    int n)
{
    __shared__ float a[kBuffers][kTile][kTile];
    __shared__ float b[kBuffers][kTile][kTile];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * kTile + y, col = blockIdx.x * kTile + x;
    const cuda::aligned_size_t<4> size(sizeof(float));
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    float sum = 0.0f;
    for (int stage = 0, filled = 0; stage < n / kTile; ++stage) {
        for (; filled <= stage + kBuffers; ++filled) {
            pipe.producer_acquire();
            if (filled < n / kTile) {
                const int to = filled % kBuffers, k = filled * kTile;
                cuda::memcpy_async(&a[to][y][x], &A[row * n + k + x], size, pipe);
                cuda::memcpy_async(&b[to][y][x], &B[(k + y) * n + col], size, pipe);
            }
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();  // the copies of all threads have arrived
        const int from = stage % kBuffers;
        for (int k = 0; k < kTile; ++k) {
            sum += a[from][y][k] * b[from][k][x];
        }
        pipe.consumer_release();
        // No barrier: the next stage fills another buffer.
    }
    C[row * n + col] = sum;
}
