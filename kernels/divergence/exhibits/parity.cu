// Double even numbers and increment odd ones, in place: with an if, and "without
// divergence".
__global__ void with_branch(int* data, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        if (data[i] % 2 == 0) {
            data[i] = data[i] * 2;
        } else {
            data[i] = data[i] + 1;
        }
    }
}

__global__ void without_branch(int* data, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const int even = data[i] % 2 == 0;
        data[i] = even * (data[i] * 2) + (1 - even) * (data[i] + 1);
    }
}
