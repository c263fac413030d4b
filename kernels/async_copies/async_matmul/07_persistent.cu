// Idea: persistent blocks: the producer already loads the next tile during this one.
// From the rung before: one cluster per two SMs, a loop over pairs of tiles in an order
// that shares rows and columns in L2, a ring that continues from tile to tile.
// Requires: an even number of blocks of T::kThreads + 128 threads, and kStages *
// T::kBytes of shared memory; all arrays aligned to 16 bytes; n and k multiples of 4.
#include "../../common/hopper/cluster.cuh"
#include "../../common/hopper/tma.cuh"
#include "multiply.cuh"

constexpr int kBlocks = 2;  // per cluster
constexpr int kGroup = 4;   // rows of pairs that are numbered column by column

// First row and column of a pair of tiles, one above the other.
template <class T>
__device__ int2 place_of_pair(int pair, int down, int across)
{
    const int group = pair / (kGroup * across), within = pair % (kGroup * across);
    const int high = min(kGroup, down - group * kGroup);
    return {(group * kGroup + within % high) * kBlocks * T::kRows,
            within / high * T::kCols};
}

template <class T, int kStages>
__global__ void __cluster_dims__(kBlocks) __launch_bounds__(T::kThreads + 128, 1)
    matmul_persistent(const __grid_constant__ TensorMap A,
                      const __grid_constant__ TensorMap B, float* __restrict__ C, int M,
                      int N, int K)
{
    extern __shared__ __align__(1024) float shared[];
    __shared__ Barrier full[kStages], empty[kStages];
    const int down = (M + kBlocks * T::kRows - 1) / (kBlocks * T::kRows);
    const int across = (N + T::kCols - 1) / T::kCols;
    const int slices = (K + kDepth - 1) / kDepth, rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, kBlocks * T::kThreads / 32);
        }
        fence_mbarrier_init();
    }
    cluster_sync();  // both blocks' barriers are initialised before either uses them

    int turn = 0, parity = 0;  // position in the ring
    const auto next = [&] {
        turn = turn + 1 == kStages ? 0 : turn + 1;
        parity ^= turn == 0;
    };
    const int first_pair = blockIdx.x / kBlocks, step = gridDim.x / kBlocks;
    if (threadIdx.x >= T::kThreads) {
        release_registers<24>();
        const int share = kDepth / kBlocks, first = rank * share;
        if (threadIdx.x == T::kThreads) {
            for (int pair = first_pair; pair < down * across; pair += step) {
                const int2 place = place_of_pair<T>(pair, down, across);
                for (int slice = 0; slice < slices; ++slice, next()) {
                    float* a = shared + turn * (T::kBytes / 4);
                    mbarrier_wait(empty + turn, parity ^ 1);
                    mbarrier_arrive_expect(full + turn, T::kBytes);
                    tma_load(a, A, slice * kDepth, place.x + rank * T::kRows,
                             full + turn);
                    tma_load_multicast(a + T::kFloatsA + first * T::kCols, B, place.y,
                                       slice * kDepth + first, full + turn, 3);
                }
            }
        }
    } else {
        claim_registers<240>();
        for (int pair = first_pair; pair < down * across; pair += step) {
            const int2 place = place_of_pair<T>(pair, down, across);
            Sums<T> sums(threadIdx.x);
            for (int slice = 0; slice < slices; ++slice, next()) {
                const float* a = shared + turn * (T::kBytes / 4);
                mbarrier_wait(full + turn, parity);
                sums.add(a, a + T::kFloatsA);
                __syncwarp();  // all lanes have read the slice
                if (threadIdx.x % 32 < kBlocks) {
                    mbarrier_arrive_at(empty + turn, threadIdx.x % 32);
                }
            }
            sums.store(C, place.x + rank * T::kRows, place.y, M, N);
        }
    }
    cluster_sync();  // no block ends while the other still arrives at its barriers
}
