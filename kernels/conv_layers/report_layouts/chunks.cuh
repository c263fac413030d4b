// The course report's layouts. An input map is cut into square chunks that lie one
// after the other, each row by row; weights are [input map][output map][row][column].
#pragma once

// An element of a map that is stored in chunks of kSide x kSide; zero outside.
template <int kSide, typename T>
__device__ T element(const T* __restrict__ map, int row, int col, int n)
{
    if (row < 0 || row >= n || col < 0 || col >= n) return T(0);
    const size_t chunk = row / kSide * (n / kSide) + col / kSide;
    return map[chunk * (kSide * kSide) + row % kSide * kSide + col % kSide];
}

// Loads a chunk and its halo to shared memory. All threads of the block must call it.
template <int kSide, int kSize, int kThreads, typename T>
__device__ void load_piece(T (&piece)[kSide + kSize - 1][kSide + kSize - 1],
                           const T* __restrict__ map, int chunk, int n)
{
    constexpr int kHalo = kSize / 2, kWide = kSide + kSize - 1;
    const int first_row = chunk / (n / kSide) * kSide,
              first_col = chunk % (n / kSide) * kSide;
    for (int i = threadIdx.x; i < kWide * kWide; i += kThreads) {
        piece[i / kWide][i % kWide] = element<kSide>(
            map, first_row + i / kWide - kHalo, first_col + i % kWide - kHalo, n);
    }
}

// The sum of the weights times the piece around element (y, x).
template <int kSize, int kWide, typename T>
__device__ T weighted(const T (&piece)[kWide][kWide], const T* taps, int y, int x)
{
    T sum = 0;
#pragma unroll
    for (int down = 0; down < kSize; ++down) {
#pragma unroll
        for (int right = 0; right < kSize; ++right) {
            sum += taps[down * kSize + right] * piece[y + down][x + right];
        }
    }
    return sum;
}
