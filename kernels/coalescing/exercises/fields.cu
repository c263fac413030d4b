// points holds all x, then all y, then all z: float points[3][n]. It used to be float
// points[n][3], and the indices below are still those of the old layout. Fix them.
__global__ void lengths(
    const float* __restrict__ points, float* __restrict__ squared, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float x = points[3 * i + 0];
        const float y = points[3 * i + 1];
        const float z = points[3 * i + 2];
        squared[i] = x * x + y * y + z * z;
    }
}
