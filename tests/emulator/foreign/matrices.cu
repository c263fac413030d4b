#ifndef FAULT
#define FAULT 0
#endif
typedef unsigned int uint;
#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
#define TILE_DIM 32
#define BLOCK_ROWS 8

extern "C" __global__ void transposeCoalesced(float* odata, const float* idata,
                                              int width, int height) {
    __shared__ float tile[TILE_DIM][TILE_DIM + 1];
    int x = blockIdx.x * TILE_DIM + threadIdx.x;
    int y = blockIdx.y * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
#if FAULT != 1
    __syncthreads();
#endif
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
#if FAULT == 2
        if (x < width && y + j < height)
#else
        if (x < height && y + j < width)
#endif
            odata[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void sgemm_naive(int M, int N, int K, float alpha, const float* A,
                                       const float* B, float beta, float* C) {
    const uint x = blockIdx.x * blockDim.x + threadIdx.x;
    const uint y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < M && y < N) {
        float tmp = 0.0;
        for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
        C[x * N + y] = alpha * tmp + beta * C[x * N + y];
    }
}

extern "C" __global__ void MatMulShared(float* A, float* B, float* C, int ARows,
                                        int ACols, int BCols) {
    float CValue = 0;
    int Row = blockIdx.y*16 + threadIdx.y;
    int Col = blockIdx.x*16 + threadIdx.x;
    __shared__ float As[16][16];
    __shared__ float Bs[16][16];
    for (int k = 0; k < (16 + ACols - 1)/16; k++) {
        if (k * 16 + threadIdx.x < ACols && Row < ARows)
            As[threadIdx.y][threadIdx.x] = A[Row * ACols + k * 16 + threadIdx.x];
        else As[threadIdx.y][threadIdx.x] = 0.0;
        if (k * 16 + threadIdx.y < ACols && Col < BCols)
            Bs[threadIdx.y][threadIdx.x] = B[(k * 16 + threadIdx.y) * BCols + Col];
        else Bs[threadIdx.y][threadIdx.x] = 0.0;
        __syncthreads();
        for (int n = 0; n < 16; ++n) CValue += As[threadIdx.y][n] * Bs[n][threadIdx.x];
#if FAULT != 3
        __syncthreads();
#endif
    }
    if (Row < ARows && Col < BCols) C[Row*BCols + Col] = CValue;
}

// 2D register tile, ragged edges.
template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
sgemm2DBlocktiling(int M, int N, int K, const float *A, const float *B, float *C) {
  const uint cRow = blockIdx.y, cCol = blockIdx.x;
  const uint numThreads = (BM * BN) / (TM * TN);
  const int threadCol = threadIdx.x % (BN / TN), threadRow = threadIdx.x / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  float threadResults[TM * TN] = {0.0};
  float regM[TM] = {0.0}, regN[TN] = {0.0};
  for (uint bkIdx = 0; bkIdx < K; bkIdx += BK) {
    for (uint i = threadIdx.x; i < BM * BK; i += numThreads) {
      uint r = cRow * BM + i / BK, c = bkIdx + i % BK;
      As[i] = r < M && c < K ? A[r * K + c] : 0.f;
    }
    for (uint i = threadIdx.x; i < BK * BN; i += numThreads) {
      uint r = bkIdx + i / BN, c = cCol * BN + i % BN;
      Bs[i] = r < K && c < N ? B[r * N + c] : 0.f;
    }
    __syncthreads();
    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      for (uint i = 0; i < TM; ++i) regM[i] = As[(threadRow * TM + i) * BK + dotIdx];
      for (uint i = 0; i < TN; ++i) regN[i] = Bs[dotIdx * BN + threadCol * TN + i];
      for (uint m = 0; m < TM; ++m)
        for (uint n = 0; n < TN; ++n) threadResults[m * TN + n] += regM[m] * regN[n];
    }
#if FAULT != 4
    __syncthreads();
#endif
  }
  for (uint m = 0; m < TM; ++m)
    for (uint n = 0; n < TN; ++n) {
      uint r = cRow * BM + threadRow * TM + m, c = cCol * BN + threadCol * TN + n;
      if (r < M && c < N) C[r * N + c] = threadResults[m * TN + n];
    }
}

// Warp tiles, float4, A turned on its way to shared memory, two buffers. 64 x 64 x 8,
// 128 threads; sizes divide.
namespace wt {
constexpr int BM = 64, BN = 64, BK = 8, WM = 32, WN = 32, TM = 8, TN = 4, THREADS = 128;

__device__ void fetch(const float* A, const float* B, int N, int K, int k0, float4& a,
                      float4& b) {
    const int t = threadIdx.x;
    a = reinterpret_cast<const float4*>(A + (t / 2) * K + k0)[t % 2];
    b = *reinterpret_cast<const float4*>(&B[(k0 + t / 16) * N + (t % 16) * 4]);
}
__device__ void place(float (*As)[BM], float (*Bs)[BN], const float4& a,
                      const float4& b) {
    const int t = threadIdx.x, k = (t % 2) * 4, m = t / 2;
    As[k + 0][m] = a.x; As[k + 1][m] = a.y; As[k + 2][m] = a.z; As[k + 3][m] = a.w;
    reinterpret_cast<float4*>(Bs[t / 16])[t % 16] = b;
}
}
extern "C" __global__ void __launch_bounds__(wt::THREADS)
sgemm_warptiled(int M, int N, int K, const float* __restrict__ A,
                const float* __restrict__ B, float* __restrict__ C) {
    using namespace wt;
    __shared__ __align__(16) float As[2][BK][BM];
    __shared__ __align__(16) float Bs[2][BK][BN];
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = (warp / 2) * WM + (lane / 8) * TM,
              col = (warp % 2) * WN + (lane % 8) * TN;
    float acc[TM][TN] = {}, ra[TM], rb[TN];
    float4 a, b;
    fetch(A, B, N, K, 0, a, b);
    place(As[0], Bs[0], a, b);
    __syncthreads();
    int now = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) fetch(A, B, N, K, k0 + BK, a, b);
        for (int k = 0; k < BK; ++k) {
            *reinterpret_cast<float4*>(&ra[0]) =
                *reinterpret_cast<float4*>(&As[now][k][row]);
            *reinterpret_cast<float4*>(&ra[4]) =
                *reinterpret_cast<float4*>(&As[now][k][row + 4]);
            *reinterpret_cast<float4*>(rb) =
                *reinterpret_cast<float4*>(&Bs[now][k][col]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(ra[i], rb[j], acc[i][j]);
        }
#if FAULT == 5
        if (more) place(As[now], Bs[now], a, b);
#else
        if (more) place(As[now ^ 1], Bs[now ^ 1], a, b);
#endif
#if FAULT != 6
        __syncthreads();
#endif
#if FAULT != 5
        now ^= 1;
#endif
    }
    for (int i = 0; i < TM; ++i)
        *reinterpret_cast<float4*>(&C[(row + i) * N + col]) =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

extern "C" __global__ void spmv_csr_scalar(int num_rows, const int* ptr,
                                           const int* indices, const float* data,
                                           const float* x, float* y) {
    int row = blockDim.x * blockIdx.x + threadIdx.x;
    if (row < num_rows) {
        float dot = 0;
        int row_start = ptr[row];
        int row_end = ptr[row + 1];
        for (int jj = row_start; jj < row_end; jj++) dot += data[jj] * x[indices[jj]];
        y[row] += dot;
    }
}

extern "C" __global__ void spmv_csr_vector(const int num_rows, const int* ptr,
                                           const int* indices, const float* data,
                                           const float* x, float* y) {
    __shared__ volatile float vals[128];
    int thread_id = blockDim.x * blockIdx.x + threadIdx.x, warp_id = thread_id / 32,
        lane = thread_id & 31;
    int row = warp_id;
    if (row < num_rows) {
        int row_start = ptr[row], row_end = ptr[row + 1];
        vals[threadIdx.x] = 0;
        for (int jj = row_start + lane; jj < row_end; jj += 32)
            vals[threadIdx.x] += data[jj] * x[indices[jj]];
        __syncwarp();
#pragma unroll
        for (int d = 16; d; d /= 2) {
            if (lane < d) vals[threadIdx.x] += vals[threadIdx.x + d];
#if FAULT != 7
            __syncwarp();
#endif
        }
        if (lane == 0) y[row] = vals[threadIdx.x];
    }
}
