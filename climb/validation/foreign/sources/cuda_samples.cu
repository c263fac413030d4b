// After NVIDIA/cuda-samples and DTolm/VkFFT: finance, transforms, images.
#ifndef FAULT
#define FAULT 0
#endif

__device__ inline float normal_cdf(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float p = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f +
              k * (-1.821255978f + k * 1.330274429f))));
    float c = 0.39894228040143267794f * __expf(-0.5f * d * d) * p;
    return d > 0 ? 1.0f - c : c;
}

extern "C" __global__ void black_scholes(float *call, float *put, const float *S,
                                         const float *X,
                                         const float *T, float R, float V, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(T[i]);
    float d1 = (__logf(S[i] / X[i]) + (R + 0.5f * V * V) * T[i]) / (V * root);
    float c1 = normal_cdf(d1), c2 = normal_cdf(d1 - V * root),
        e = X[i] * __expf(-R * T[i]);
    call[i] = S[i] * c1 - e * c2;
    put[i] = e * (1.0f - c2) - S[i] * (1.0f - c1);
}

// One option per block; the tree shrinks by one step between barriers.
extern "C" __global__ void binomial(const float *S, const float *X, float *out,
                                    int steps,
                                    float dt_v, float pu, float pd) {
    extern __shared__ float value[];
    int t = threadIdx.x;
    float end = S[blockIdx.x] * expf(dt_v * (2.0f * t - steps)) - X[blockIdx.x];
    value[t] = fmaxf(end, 0.0f);
    for (int n = steps; n > 0; --n) {
        __syncthreads();
        float v = t < n ? pu * value[t + 1] + pd * value[t] : 0.0f;
#if FAULT != 1
        __syncthreads();
#endif
        if (t < n) value[t] = v;
    }
    if (t == 0) out[blockIdx.x] = value[0];
}

// In-place Walsh-Hadamard transform, radix 4 in shared memory.
extern "C" __global__ void walsh(float *data, int log2n) {
    extern __shared__ float s[];
    int n = 1 << log2n, t = threadIdx.x;
    float *d = data + (blockIdx.x << log2n);
    for (int i = t; i < n; i += blockDim.x) s[i] = d[i];
    int stride = n / 4;
    for (; stride > 0; stride /= 4) {
        __syncthreads();
        int lo = t & stride - 1, i0 = (t - lo) * 4 + lo;
        int i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride;
        float a = s[i0], b = s[i1], c = s[i2], e = s[i3];
        s[i0] = a + b + c + e;
        s[i1] = a - b + c - e;
        s[i2] = a + b - c - e;
        s[i3] = a - b - c + e;
    }
    if (log2n & 1) {
#if FAULT != 2
        __syncthreads();
#endif
        for (int i = t; i < n / 2; i += blockDim.x) {
            float a = s[2 * i], b = s[2 * i + 1];
            s[2 * i] = a + b;
            s[2 * i + 1] = a - b;
        }
    }
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) d[i] = s[i];
}

// A column of 64 one-byte bins per thread, each in the thread's own bank: no conflicts.
extern "C" __global__ void histogram64(const unsigned char *data, unsigned *out,
                                       int n) {
    __shared__ unsigned char bins[64 * 64];
    int t = threadIdx.x;
    for (int b = 0; b < 64; ++b) bins[b * 64 + t] = 0;
    for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64)
        ++bins[(data[i] >> 2) * 64 + t];
#if FAULT != 3
    __syncthreads();
#endif
    unsigned sum = 0;
    for (int k = 0; k < 64; ++k) sum += bins[t * 64 + (k + t) % 64];
    atomicAdd(&out[t], sum);
}

// The row pass of a separable filter: a tile with a halo on both sides.
__constant__ float taps[9] = {0.05f, -0.1f, 0.2f, 0.3f, 0.4f, 0.25f, -0.3f, 0.15f,
    0.05f};
extern "C" __global__ void convolution_rows(const float *x, float *y, int W) {
    __shared__ float s[4][64 + 8];
    int row = blockIdx.y * 4 + threadIdx.y, base = blockIdx.x * 64, t = threadIdx.x;
#if FAULT == 4
    for (int i = t; i < 64 + 4; i += 64) {
#else
    for (int i = t; i < 64 + 8; i += 64) {
#endif
        int c = base + i - 4;
        s[threadIdx.y][i] = c >= 0 && c < W ? x[row * W + c] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 9; ++k) sum += taps[k] * s[threadIdx.y][t + k];
    if (base + t < W) y[row * W + base + t] = sum;
}

extern "C" __global__ void haar(const float *x, float *approx, float *detail,
                                int levels) {
    extern __shared__ float s[];
    int t = threadIdx.x, n = blockDim.x;
    float a = x[2 * t], b = x[2 * t + 1];
    int to = n;
    for (int l = 0; l < levels; ++l) {
        if (t < n) {
            detail[to - n + t] = (a - b) * 0.70710678f;
            s[t] = (a + b) * 0.70710678f;
        }
#if FAULT != 5
        __syncthreads();
#endif
        n /= 2;
        to += n;
        if (t < n) a = s[2 * t], b = s[2 * t + 1];
        __syncthreads();
    }
    if (t < 2 * n) approx[t] = s[t];
}

// Stockham autosort, radix 2; one transform per block, two buffers.
extern "C" __global__ void stockham(const float2 *x, float2 *y, int n) {
    extern __shared__ float2 buf[];
    float2 *in = buf, *out = buf + n;
    int t = threadIdx.x, base = blockIdx.x * n;
    in[t] = x[base + t];
    in[t + n / 2] = x[base + t + n / 2];
    for (int ns = 1; ns < n; ns *= 2) {
#if FAULT != 6
        __syncthreads();
#endif
        float s, c;
        sincospif(-float(t % ns) / ns, &s, &c);
        float2 a = in[t], b = in[t + n / 2];
        b = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
        int at = t / ns * ns * 2 + t % ns;
        out[at] = make_float2(a.x + b.x, a.y + b.y);
        out[at + ns] = make_float2(a.x - b.x, a.y - b.y);
        float2 *swap = in;
        in = out;
        out = swap;
    }
    __syncthreads();
    y[base + t] = in[t];
    y[base + t + n / 2] = in[t + n / 2];
}

// 64 points in a block of 16 threads: three radix-4 passes, digit-reversed stores.
extern "C" __global__ void radix4(const float2 *x, float2 *y) {
    __shared__ float2 s[64];
    int t = threadIdx.x, base = blockIdx.x * 64;
    for (int k = 0; k < 4; ++k) s[t + 16 * k] = x[base + t + 16 * k];
    for (int q = 16; q > 0; q /= 4) {
        __syncthreads();
        int j = t % q, at = t / q * q * 4 + j;
        float2 v[4], w[4];
        for (int k = 0; k < 4; ++k) v[k] = s[at + k * q];
        float2 a = {v[0].x + v[2].x, v[0].y + v[2].y},
            b = {v[0].x - v[2].x, v[0].y - v[2].y};
        float2 c = {v[1].x + v[3].x, v[1].y + v[3].y},
            d = {v[1].x - v[3].x, v[1].y - v[3].y};
        w[0] = {a.x + c.x, a.y + c.y};
        w[1] = {b.x + d.y, b.y - d.x};
        w[2] = {a.x - c.x, a.y - c.y};
        w[3] = {b.x - d.y, b.y + d.x};
        for (int k = 0; k < 4; ++k) {
            float si, co;
            sincospif(-2.0f * j * k / (4 * q), &si, &co);
            s[at + k * q] = {w[k].x * co - w[k].y * si, w[k].x * si + w[k].y * co};
        }
    }
    __syncthreads();
    for (int k = 0; k < 4; ++k) {
        int i = t + 16 * k;
#if FAULT == 7
        y[base + i] = s[i];
#else
        y[base + (i % 4 * 16 + i / 4 % 4 * 4 + i / 16)] = s[i];
#endif
    }
}

// 8 x 8 cosine transform of image blocks: one thread per column, then one per row.
__device__ void dct8(float *v, int step) {
    float out[8];
    for (int k = 0; k < 8; ++k) {
        out[k] = 0;
        for (int i = 0; i < 8; ++i)
            out[k] += v[i * step] * cospif((2 * i + 1) * k / 16.0f);
        out[k] *= k ? 0.5f : 0.35355339f;
    }
    for (int k = 0; k < 8; ++k) v[k * step] = out[k];
}
extern "C" __global__ void dct(const float *x, float *y, int W) {
    __shared__ float s[8][8 + 1];
    int t = threadIdx.x, at = blockIdx.y * 8 * W + blockIdx.x * 8;
    for (int r = 0; r < 8; ++r) s[r][t] = x[at + r * W + t];
    dct8(&s[0][t], 9);
#if FAULT != 8
    __syncthreads();
#endif
    dct8(&s[t][0], 1);
    __syncthreads();
    for (int r = 0; r < 8; ++r) y[at + r * W + t] = s[r][t];
}

// Counts a symmetric tridiagonal matrix's eigenvalues below x, by Sturm's sequence.
extern "C" __global__ void sturm_count(const float *diag, const float *off,
                                       const float *x,
                                       int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
    float q = 1;
    for (int k = 0; k < n; ++k) {
        q = diag[k] - x[i] - (k ? off[k - 1] * off[k - 1] / q : 0);
        if (q == 0) q = 1e-30f;
        count += q < 0;
    }
    out[i] = count;
}

// Sobol numbers by Gray codes.
extern "C" __global__ void sobol(const unsigned *dir, float *out, int n) {
    __shared__ unsigned v[32];
    if (threadIdx.x < 32) v[threadIdx.x] = dir[blockIdx.y * 32 + threadIdx.x];
#if FAULT != 9
    __syncthreads();
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = 0, gray = i ^ i >> 1;
    for (; gray; gray &= gray - 1) x ^= v[__ffs(gray) - 1];
    out[blockIdx.y * n + i] = x * 2.3283064365386963e-10f;
}
