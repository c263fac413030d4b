// A warp stages its rows four floats at a time, with one unused float after each row:
// each of the four floats needs its own index.
constexpr int kWarp = 32;

template <int kLength>
__global__ void row_sums(const float* __restrict__ rows, float* __restrict__ sums)
{
    __shared__ float staged[kWarp * (kLength + 1)];
    for (int i = 4 * threadIdx.x; i < kWarp * kLength; i += 4 * kWarp) {
        const float4 four = *reinterpret_cast<const float4*>(rows + i);
        staged[i + i / kLength] = four.x;
        staged[i + 1 + (i + 1) / kLength] = four.y;
        staged[i + 2 + (i + 2) / kLength] = four.z;
        staged[i + 3 + (i + 3) / kLength] = four.w;
    }
    __syncwarp();  // all rows are staged before any lane reads them
    float sum = 0.0f;
    for (int p = 0; p < kLength; ++p) {
        sum += staged[threadIdx.x * (kLength + 1) + p];
    }
    sums[threadIdx.x] = sum;
}
