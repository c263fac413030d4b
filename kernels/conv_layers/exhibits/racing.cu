// A convolution layer with 3 x 3 weights: a block takes a piece of one input map and
// adds its contribution to every output map. Outputs start at zero.
constexpr int kSide = 8;
constexpr int kWide = kSide + 2;

__global__ void layer(const int* __restrict__ input, const int* __restrict__ weights,
                      int* __restrict__ output, int n, int c_in, int c_out)
{
    __shared__ int piece[kWide][kWide];
    const int first_row = blockIdx.y * kSide, first_col = blockIdx.x * kSide,
              map = blockIdx.z;
    for (int i = threadIdx.x; i < kWide * kWide; i += kSide * kSide) {
        const int row = first_row + i / kWide - 1, col = first_col + i % kWide - 1;
        const bool inside = row >= 0 && row < n && col >= 0 && col < n;
        piece[i / kWide][i % kWide] = inside ? input[(map * n + row) * n + col] : 0;
    }
    __syncthreads();  // the piece is complete before any thread reads it
    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide;
    const int row = first_row + y, col = first_col + x;
    if (row >= n || col >= n) return;
    for (int out = 0; out < c_out; ++out) {
        const int* taps = weights + (out * c_in + map) * 9;
        int sum = 0;
        for (int tap = 0; tap < 9; ++tap) {
            sum += taps[tap] * piece[y + tap / 3][x + tap % 3];
        }
        output[(out * n + row) * n + col] += sum;
    }
}
