// After karpathy/llm.c (llmc/*.cuh, dev/cuda/*.cu): the training kernels of GPT-2.
#ifndef FAULT
#define FAULT 0
#endif

__device__ float warp_sum(float v) {
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

extern "C" __global__ void encoder(const int *token, const float *wte, const float *wpe,
                                   float4 *out, int rows, int T, int C4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * C4) return;
    int row = i / C4, c = i % C4;
    float4 a = reinterpret_cast<const float4 *>(wte)[token[row] * C4 + c];
    float4 b = reinterpret_cast<const float4 *>(wpe)[row % T * C4 + c];
    out[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// One warp per row; stores mean and reciprocal deviation for the backward pass.
extern "C" __global__ void layernorm_rows(const float *x, const float *w,
                                          const float *b,
                                          float *y, float *mean, float *rstd, int N,
                                              int C) {
    int lane = threadIdx.x % 32,
        row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
#if FAULT != 1
    if (row >= N) return;
#endif
    x += row * C;
    float s = 0, q = 0;
    for (int i = lane; i < C; i += 32) s += x[i];
    float m = warp_sum(s) / C;
    for (int i = lane; i < C; i += 32) q += (x[i] - m) * (x[i] - m);
    float r = rsqrtf(warp_sum(q) / C + 1e-5f);
    if (lane == 0) mean[row] = m, rstd[row] = r;
    for (int i = lane; i < C; i += 32) y[row * C + i] = (x[i] - m) * r * w[i] + b[i];
}

// A block sums over rows, then combines its warps' sums in shared memory.
extern "C" __global__ void layernorm_weights(const float *dy, const float *x,
                                             const float *mean, const float *rstd,
                                             float *dw, float *db, int N, int C) {
    __shared__ float sw[8][32], sb[8][32];
    int c = blockIdx.x * 32 + threadIdx.x;
    float w = 0, b = 0;
    if (c < C)
        for (int n = threadIdx.y; n < N; n += 8) {
            w += dy[n * C + c] * (x[n * C + c] - mean[n]) * rstd[n];
            b += dy[n * C + c];
        }
    sw[threadIdx.y][threadIdx.x] = w;
    sb[threadIdx.y][threadIdx.x] = b;
#if FAULT != 2
    __syncthreads();
#endif
    if (threadIdx.y || c >= C) return;
    for (int k = 1; k < 8; ++k) w += sw[k][threadIdx.x], b += sb[k][threadIdx.x];
    dw[c] += w;
    db[c] += b;
}

extern "C" __global__ void gelu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], cube = 0.044715f * v * v * v;
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + cube)));
}

// Causal softmax of T rows each, one warp a row, maximum and sum in one pass.
extern "C" __global__ void softmax_causal(const float *x, float *p, int rows, int T,
                                          float t) {
    int lane = threadIdx.x & 31, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    int own = row % T;
    float m = -3e38f, s = 0;
    for (int i = lane; i <= own; i += 32) {
        float v = t * x[row * T + i], before = m;
        m = fmaxf(m, v);
        s = s * expf(before - m) + expf(v - m);
    }
    float most = m;
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
#if FAULT == 3
    float total = warp_sum(s);
#else
    float total = warp_sum(s * expf(m - most));
#endif
    for (int i = lane; i < T; i += 32)
        p[row * T + i] = i <= own ? expf(t * x[row * T + i] - most) / total : 0.0f;
}

// The classifier, fused: loss of each row, and the logits replaced by their gradients.
extern "C" __global__ void fused_classifier(float *logits, float *loss,
                                            const int *target,
                                            int V, int P) {
    __shared__ float part[2][4];
    int row = blockIdx.x, t = threadIdx.x;
    logits += row * P;
    float m = -3e38f;
    for (int i = t; i < V; i += blockDim.x) m = fmaxf(m, logits[i]);
    for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (t % 32 == 0) part[0][t / 32] = m;
    __syncthreads();
    m = fmaxf(fmaxf(part[0][0], part[0][1]), fmaxf(part[0][2], part[0][3]));
    float s = 0;
    for (int i = t; i < V; i += blockDim.x) s += expf(logits[i] - m);
    s = warp_sum(s);
    if (t % 32 == 0) part[1][t / 32] = s;
    __syncthreads();
    s = part[1][0] + part[1][1] + part[1][2] + part[1][3];
    int right = target[row];
    if (t == 0) loss[row] = logf(s) + m - logits[right];
#if FAULT != 4
    __syncthreads();
#endif
    for (int i = t; i < V; i += blockDim.x)
        logits[i] = expf(logits[i] - m) / s - (i == right);
}

extern "C" __global__ void adamw(float *w, const float *g, float *m, float *v, int n,
                                 float lr,
                                 float b1, float b2, float c1, float c2, float eps,
                                     float wd) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float mi = fmaf(b1, m[i], fmaf(-b1, g[i], g[i]));
    float vi = fmaf(b2, v[i], fmaf(-b2, g[i] * g[i], g[i] * g[i]));
    m[i] = mi;
    v[i] = vi;
    w[i] -= lr * (mi / c1 / (sqrtf(vi / c2) + eps) + wd * w[i]);
}

extern "C" __global__ void squared_norm(const float *g, float *partial, int n) {
    __shared__ float part[4];
    float s = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x *
         128) s += g[i] * g[i];
    s = warp_sum(s);
#if FAULT == 5
    if (threadIdx.x % 32 == 0 && threadIdx.x < 96) part[threadIdx.x / 32] = s;
#else
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
#endif
    __syncthreads();
    if (threadIdx.x == 0) partial[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
