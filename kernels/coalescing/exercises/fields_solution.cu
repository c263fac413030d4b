// points holds all x, then all y, then all z: float points[3][n]. Neighbouring lanes
// read neighbouring floats of each.
__global__ void lengths(
    const float* __restrict__ points, float* __restrict__ squared, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float x = points[i];
        const float y = points[n + i];
        const float z = points[2 * n + i];
        squared[i] = x * x + y * y + z * z;
    }
}
