// A copy in which each thread loads kPieces pieces before it stores the first. A piece
// is a float or a float4. A thread's pieces are kGroup apart, a compile-time constant,
// so one address register serves them all.
constexpr int kGroup = 32;

template <typename Piece, int kPieces>
__device__ void copy_pieces(
    const float* __restrict__ source, float* __restrict__ target, size_t n)
{
    constexpr size_t kWidth = sizeof(Piece) / sizeof(float);
    const Piece* from = reinterpret_cast<const Piece*>(source);
    Piece* to = reinterpret_cast<Piece*>(target);
    const size_t pieces = n / kWidth;
    const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t first = thread / kGroup * kGroup * kPieces + thread % kGroup;
    if (first + (kPieces - 1) * kGroup < pieces) {
        Piece value[kPieces];
#pragma unroll
        for (int p = 0; p < kPieces; ++p) {
            value[p] = from[first + p * kGroup];
        }
#pragma unroll
        for (int p = 0; p < kPieces; ++p) {
            to[first + p * kGroup] = value[p];
        }
    } else {
        for (size_t i = first; i < pieces && i < first + kPieces * kGroup;
             i += kGroup) {
            to[i] = from[i];
        }
    }
    const size_t tail = pieces * kWidth + thread;
    if (tail < n) {
        target[tail] = source[tail];
    }
}
