// Wrong on purpose, each in one way.
extern "C" __global__ void last_missing(float* __restrict__ y,
                                        const float* __restrict__ x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) y[i] = 2.0f * x[i] + 1.0f;
}
extern "C" __global__ void one_wrong(float* __restrict__ y, const float* __restrict__ x,
                                     int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = i == 5 ? 1000.0f : 2.0f * x[i] + 1.0f;
}
extern "C" __global__ void swallows_nan(float* __restrict__ y,
                                        const float* __restrict__ x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] == x[i] ? 2.0f * x[i] + 1.0f : 1.0f;
}
