// Exhibit. Source: the course report on classifier and convolution layers, class1 as
// published.
// A block per tile of 32 x 32 weights, a thread per weight. Both indices into the tile
// come from t % kTile, tiles are 2 * kTile elements apart instead of a tile's width or
// height, and parts of the vectors are one element apart.
constexpr int kTile = 32;

extern "C" __global__ void class1(const int* __restrict__ weights,
                                  const int* __restrict__ input, int* output,
                                  int inputs, int outputs)
{
    __shared__ int values[kTile];
    __shared__ int tile[kTile * kTile];
    const int t = threadIdx.x;
    const int part = blockIdx.x % (inputs / kTile);
    if (t % kTile == 0) {
        values[t / kTile] = input[part + t / kTile];
    }
    tile[t] = weights[part * 2 * kTile + (t % kTile) * kTile + t % kTile];
    __syncthreads();
    output[blockIdx.x % (outputs / kTile) + t % kTile] += tile[t] * values[t % kTile];
}
