// A block of 32 threads, one warp, adds up one row. The sums are correct, but the loads
// are not coalesced.
__global__ void row_sums(
    const float* __restrict__ matrix, float* __restrict__ sums, int cols)
{
    __shared__ float partial[32];
    const int row = blockIdx.x;
    const int lane = threadIdx.x;
    const int share = (cols + 31) / 32;
    float sum = 0.0f;
    for (int j = 0; j < share; ++j) {
        // Each lane takes a contiguous piece of the row. Which columns should it take?
        const int col = lane * share + j;
        if (col < cols) {
            sum += matrix[row * cols + col];
        }
    }
    partial[lane] = sum;
    __syncthreads();  // every lane has written its part before lane 0 reads
    if (lane == 0) {
        float total = 0.0f;
        for (int i = 0; i < 32; ++i) {
            total += partial[i];
        }
        sums[row] = total;
    }
}
