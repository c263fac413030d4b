// A convolution layer with 3 x 3 weights. A block computes kThreads neighbouring pixels
// of one output map.
constexpr int kThreads = 64;

__global__ void layer(const float* input, const float* weights, float* output, int n,
                      int c_in, int c_out)
{
    const int pixel = blockIdx.x * kThreads + threadIdx.x, out = blockIdx.y;
    if (pixel >= n * n) return;
    const int row = pixel / n, col = pixel % n;
    float sum = 0.0f;
    for (int map = 0; map < c_in; ++map) {
        for (int tap = 0; tap < 9; ++tap) {
            const int r = row + tap / 3 - 1, c = col + tap % 3 - 1;
            const bool inside = r >= 0 && r < n && c >= 0 && c < n;
            sum += weights[(out * c_in + map) * 9 + tap] *
                   (inside ? input[(map * n + r) * n + c] : 0.0f);
        }
    }
    output[out * n * n + pixel] = sum;
}
