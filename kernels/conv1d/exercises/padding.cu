// A warp stages its rows four floats at a time, with one unused float after each row,
// against bank conflicts. It is correct for rows of 8 floats. For rows of 6 it is not,
// and the emulator shows where.
constexpr int kWarp = 32;

template <int kLength>
__global__ void row_sums(const float* __restrict__ rows, float* __restrict__ sums)
{
    __shared__ float staged[kWarp * (kLength + 1)];
    for (int i = 4 * threadIdx.x; i < kWarp * kLength; i += 4 * kWarp) {
        const float4 four = *reinterpret_cast<const float4*>(rows + i);
        float* to = staged + i + i / kLength;
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    }
    __syncwarp();  // all rows are staged before any lane reads them
    float sum = 0.0f;
    for (int p = 0; p < kLength; ++p) {
        sum += staged[threadIdx.x * (kLength + 1) + p];
    }
    sums[threadIdx.x] = sum;
}
