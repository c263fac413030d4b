// A matrix product by CUTLASS on tensor cores, row-major, with a result in float32.
// FACTOR is the type of the factors, OPERATOR the multiplication, STEP the steps of k
// per instruction. OpMultiplyAddFastF32 splits each float32 into two TF32 numbers and
// adds three of the four products (CUTLASS example 28,
// ampere_3xtf32_fast_accurate_tensorop_gemm).
//
// CUTLASS computes a kernel's parameters in host code. NVRTC compiles device code
// alone, so one thread of `prepare` computes them, the host copies them, and `multiply`
// takes them by value.
#include <cutlass/device_kernel.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/kernel/default_gemm_universal.h>
#include <cutlass/gemm/threadblock/threadblock_swizzle.h>

using Row = cutlass::layout::RowMajor;
constexpr auto kPlain = cutlass::ComplexTransform::kNone;

using Kernel = typename cutlass::gemm::kernel::DefaultGemmUniversal<
    FACTOR, Row, kPlain, ALIGNMENT, FACTOR, Row, kPlain, ALIGNMENT, float, Row, float,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<TILE_M, TILE_N, TILE_K>,
    cutlass::gemm::GemmShape<WARP_M, WARP_N, TILE_K>,
    cutlass::gemm::GemmShape<16, 8, STEP>,
    cutlass::epilogue::thread::LinearCombination<float, STORED, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, STAGES,
    cutlass::arch::OPERATOR>::GemmKernel;
using Params = typename Kernel::Params;

// The parameters of c = a b, all row-major and packed, on a GPU with `sms` SMs.
__device__ Params parameters(const FACTOR* a, const FACTOR* b, float* c, int m, int n,
                             int k, int sms)
{
    constexpr auto kMode = cutlass::gemm::GemmUniversalMode::kGemm;
    const typename Kernel::Arguments given(
        kMode, {m, n, k}, 1, {1.0f, 0.0f}, a, b, c, c, 0, 0, 0, 0, k, n, n, n);
    return Params(given, sms, 1);
}

// The launch's needs: bytes of parameters, bytes of shared memory, threads, grid.
extern "C" __global__ void describe(int m, int n, int k, int* needs)
{
    const dim3 grid = parameters(nullptr, nullptr, nullptr, m, n, k, 1).get_grid_dims();
    needs[0] = sizeof(Params);
    needs[1] = sizeof(typename Kernel::SharedStorage);
    needs[2] = Kernel::kThreadCount;
    needs[3] = grid.x;
    needs[4] = grid.y;
    needs[5] = grid.z;
}

extern "C" __global__ void prepare(Params* made, const FACTOR* a, const FACTOR* b,
                                   float* c, int m, int n, int k, int sms)
{
    *made = parameters(a, b, c, m, n, k, sms);
}

extern "C" __global__ void __launch_bounds__(Kernel::kThreadCount, 1)
    multiply(const __grid_constant__ Params params)
{
    extern __shared__ __align__(128) char shared[];
    Kernel::invoke(params, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
}
