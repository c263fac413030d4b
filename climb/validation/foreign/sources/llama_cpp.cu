// After ggml-org/llama.cpp (ggml/src/ggml-cuda/*.cu): blocks of 32 weights with one
// scale.
#ifndef FAULT
#define FAULT 0
#endif

struct q8_0 { float d; signed char q[32]; };
struct q4_0 { float d; unsigned char q[16]; };
struct q4_1 { float d, m; unsigned char q[16]; };

extern "C" __global__ void quantize_q8(const float *x, q8_0 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FAULT == 1
    if (i >= n) return;
    float v = x[i + 1];
#else
    if (i >= n) return;
    float v = x[i];
#endif
    float most = fabsf(v);
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    float scale = most / 127;
    y[i / 32].q[i % 32] = most == 0 ? 0 : (signed char)roundf(v / scale);
    if (i % 32 == 0) y[i / 32].d = scale;
}

// Low nibbles are the first half of a block, high nibbles the second.
extern "C" __global__ void dequantize_q4(const q4_0 *x, float *y, int blocks) {
    int b = blockIdx.x * (blockDim.x / 16) + threadIdx.x / 16, k = threadIdx.x % 16;
    if (b >= blocks) return;
    int q = x[b].q[k];
    y[b * 32 + k] = ((q & 15) - 8) * x[b].d;
#if FAULT == 2
    y[b * 32 + k + 15] = ((q >> 4) - 8) * x[b].d;
#else
    y[b * 32 + k + 16] = ((q >> 4) - 8) * x[b].d;
#endif
}

extern "C" __global__ void dequantize_q4_1(const q4_1 *x, float2 *y, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    const q4_1 &b = x[i / 16];
    int k = i % 16 * 2, shift = k < 16 ? 0 : 4;
    int lo = b.q[k % 16] >> shift & 15, hi = b.q[k % 16 + 1] >> shift & 15;
    y[i] = make_float2(lo * b.d + b.m, hi * b.d + b.m);
}

// One row per block of four warps; integers by dp4a, scales in float32.
extern "C" __global__ void matvec_q4_q8(const q4_0 *w, const q8_0 *x, float *y,
                                        int blocks) {
    __shared__ float part[4];
    float sum = 0;
    for (int j = threadIdx.x; j < blocks * 4; j += blockDim.x) {
        int b = j / 4, k = j % 4;
        const q4_0 &a = w[blockIdx.x * blocks + b];
        int packed = *reinterpret_cast<const int *>(a.q + 4 * k);
        const int *q = reinterpret_cast<const int *>(x[b].q);
        int lo = __vsubss4(packed & 0x0f0f0f0f, 0x08080808);
        int hi = __vsubss4(packed >> 4 & 0x0f0f0f0f, 0x08080808);
        sum += a.d * x[b].d * __dp4a(hi, q[4 + k], __dp4a(lo, q[k], 0));
    }
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
#if FAULT != 3
    __syncthreads();
#endif
    if (threadIdx.x == 0) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}

extern "C" __global__ void rms_norm(const float *x, float *y, int n, float eps) {
    extern __shared__ float sums[];
    const float *row = x + blockIdx.x * n;
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += row[i] * row[i];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
    __syncthreads();
#if FAULT == 4
    s = sums[threadIdx.x % 32];
#else
    s = threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0;
#endif
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    float scale = rsqrtf(s / n + eps);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = scale *
        row[i];
}

template <bool neox>
__device__ void rope(const float *x, const int *pos, float *y, int dim, int turned,
                     float base) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (2 * pair >= dim) return;
    const float *in = x + row * dim;
    float *out = y + row * dim;
    if (2 * pair >= turned) {
        out[2 * pair] = in[2 * pair];
        out[2 * pair + 1] = in[2 * pair + 1];
        return;
    }
    int a = neox ? pair : 2 * pair, b = neox ? pair + turned / 2 : 2 * pair + 1;
    float angle = pos[row] * powf(base, -2.0f * pair / turned), s, c;
    sincosf(angle, &s, &c);
    out[a] = in[a] * c - in[b] * s;
    out[b] = in[a] * s + in[b] * c;
}
extern "C" __global__ void rope_norm(const float *x, const int *pos, float *y, int d,
                                     int t) {
    rope<false>(x, pos, y, d, t, 10000.0f);
}
extern "C" __global__ void rope_neox(const float *x, const int *pos, float *y, int d,
                                     int t) {
    rope<true>(x, pos, y, d, t, 10000.0f);
}

// Softmax with a mask and ALiBi slopes; values stay in shared memory between passes.
extern "C" __global__ void soft_max_alibi(const float *x, const float *mask, float *y,
                                          int n,
                                          float scale, float m0, int heads) {
    extern __shared__ float v[];
    __shared__ float part[32];
    int row = blockIdx.x, head = blockIdx.y, warps = blockDim.x / 32, t = threadIdx.x;
    float slope = powf(m0, head + 1), most = -3e38f, sum = 0;
    x += (head * gridDim.x + row) * n;
    y += (head * gridDim.x + row) * n;
    for (int i = t; i < n; i += blockDim.x) {
        v[i] = x[i] * scale + slope * mask[row * n + i];
        most = fmaxf(most, v[i]);
    }
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (t % 32 == 0) part[t / 32] = most;
    __syncthreads();
    for (int w = 0; w < warps; ++w) most = fmaxf(most, part[w]);
#if FAULT != 5
    __syncthreads();
#endif
    for (int i = t; i < n; i += blockDim.x) sum += v[i] = expf(v[i] - most);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (t % 32 == 0) part[t / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < warps; ++w) sum += part[w];
    for (int i = t; i < n; i += blockDim.x) y[i] = v[i] / sum;
}

extern "C" __global__ void get_rows_q8(const q8_0 *x, const int *rows, float *y,
                                       int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (i >= n) return;
    const q8_0 &b = x[rows[r] * (n / 32) + i / 32];
    y[r * n + i] = b.d * b.q[i % 32];
}

// Indices of a row sorted by value in shared memory, padded to a power of two.
extern "C" __global__ void argsort(const float *x, int *out, int n, int padded) {
    extern __shared__ int order[];
    int t = threadIdx.x;
    x += blockIdx.x * n;
    order[t] = t;
    __syncthreads();
    for (int k = 2; k <= padded; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other > t) {
                int a = order[t], b = order[other];
                bool up = (t & k) == 0;
                bool after = a >= n || (b < n && x[a] > x[b]);
                bool before = b >= n || (a < n && x[a] < x[b]);
                if (up ? after : before) order[t] = b, order[other] = a;
            }
#if FAULT != 6
            __syncthreads();
#endif
        }
    if (t < n) out[blockIdx.x * n + t] = order[t];
}

extern "C" __global__ void im2col(const float *x, float *y, int C, int H, int W,
                                  int K) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, kk = K * K;
    if (i >= H * W * C * kk) return;
    int p = i / (C * kk), c = i / kk % C, ky = i % kk / K, kx = i % K;
    int sy = p / W + ky - K / 2, sx = p % W + kx - K / 2;
#if FAULT == 7
    bool inside = sy >= 0 && sy < H && sx >= 0 && sx <= W;
#else
    bool inside = sy >= 0 && sy < H && sx >= 0 && sx < W;
#endif
    y[i] = inside ? x[(c * H + sy) * W + sx] : 0.0f;
}

extern "C" __global__ void swiglu(const float *x, float *y, int rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * n) return;
    const float *row = x + i / n * 2 * n;
    float a = row[i % n];
    y[i] = a / (1.0f + __expf(-a)) * row[n + i % n];
}

extern "C" __global__ void group_norm(const float *x, float *y, int group, int total) {
    __shared__ float part[8];
    int start = blockIdx.x * group, end = min(start + group, total), t = threadIdx.x;
    float v = 0;
    for (int pass = 0; pass < 2; ++pass) {
        float mean = v / group, s = 0;
        for (int i = start + t; i < end; i += blockDim.x)
            s += pass ? (y[i] = x[i] - mean, y[i] * y[i]) : x[i];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
        if (t % 32 == 0) part[t / 32] = s;
        __syncthreads();
        v = 0;
        for (int w = 0; w < blockDim.x / 32; ++w) v += part[w];
#if FAULT != 8
        __syncthreads();
#endif
    }
    float r = rsqrtf(v / group + 1e-6f);
    for (int i = start + t; i < end; i += blockDim.x) y[i] *= r;
}
