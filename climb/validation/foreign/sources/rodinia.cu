// After yuhc/gpu-rodinia, and zjin-lcf/HeCBench.
#ifndef FAULT
#define FAULT 0
#endif

// Dynamic programming over rows, several rows per launch; the tile shrinks by its
// halo.
extern "C" __global__ void pathfinder(const int *wall, const int *from, int *to,
                                      int cols,
                                      int steps) {
    __shared__ int prev[64];
    int t = threadIdx.x, x = blockIdx.x * (64 - 2 * steps) + t - steps;
    bool in = x >= 0 && x < cols;
    int best = in ? from[x] : 1 << 30;
    prev[t] = best;
    for (int k = 0; k < steps; ++k) {
        __syncthreads();
        int w = t > 0 ? prev[t - 1] : 1 << 30, e = t < 63 ? prev[t + 1] : 1 << 30;
#if FAULT == 1
        best = min(min(w, e), best) + (x >= 0 ? wall[k * cols + x] : 0);
#else
        best = in ? min(min(w, e), best) + wall[k * cols + x] : 1 << 30;
#endif
#if FAULT != 2
        __syncthreads();
#endif
        prev[t] = best;
    }
    if (in && t >= steps && t < 64 - steps) to[x] = best;
}

extern "C" __global__ void hotspot(const float *temp, const float *power, float *out,
                                   int W, int H,
                                   float rx, float ry, float rz) {
    __shared__ float s[18][18];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * 16 + tx - 1, y = blockIdx.y * 16 + ty - 1;
    int cx = min(max(x, 0), W - 1), cy = min(max(y, 0), H - 1);
    s[ty][tx] = temp[cy * W + cx];
#if FAULT != 3
    __syncthreads();
#endif
    if (tx == 0 || ty == 0 || tx == 17 || ty == 17 || x >= W || y >= H) return;
    float c = s[ty][tx];
    out[y * W + x] = c + power[y * W + x] + rx *
        (s[ty][tx - 1] + s[ty][tx + 1] - 2 * c) +
                     ry * (s[ty - 1][tx] + s[ty + 1][tx] - 2 * c) + rz * (80.0f - c);
}

// Needleman-Wunsch in a tile of 16 x 16: anti-diagonals, forward and back.
extern "C" __global__ void needle(int *score, const int *similar, int n, int penalty) {
    __shared__ int s[17][17], r[16][16];
    int t = threadIdx.x;
    for (int k = 0; k < 16; ++k) r[k][t] = similar[(k + 1) * n + t + 1];
    s[t + 1][0] = score[(t + 1) * n];
    s[0][t + 1] = score[t + 1];
#if FAULT != 4
    if (t == 0) s[0][0] = score[0];
#endif
    __syncthreads();
    for (int d = 0; d < 31; ++d) {
        int x = t + 1, y = d - t + 1;
        if (y >= 1 && y <= 16)
            s[y][x] = max(s[y - 1][x - 1] + r[y - 1][x - 1],
                          max(s[y][x - 1], s[y - 1][x]) - penalty);
#if FAULT != 5
        __syncthreads();
#endif
    }
    for (int k = 0; k < 16; ++k) score[(k + 1) * n + t + 1] = s[k + 1][t + 1];
}

extern "C" __global__ void lud_diagonal(float *m, int n) {
    __shared__ float s[16][16];
    int t = threadIdx.x;
    for (int i = 0; i < 16; ++i) s[i][t] = m[i * n + t];
    __syncthreads();
    for (int i = 0; i < 15; ++i) {
        if (t > i) {
            for (int j = 0; j < i; ++j) s[t][i] -= s[t][j] * s[j][i];
            s[t][i] /= s[i][i];
        }
#if FAULT != 6
        __syncthreads();
#endif
        if (t > i)
            for (int j = 0; j <= i; ++j) s[i + 1][t] -= s[i + 1][j] * s[j][t];
        __syncthreads();
    }
    for (int i = 1; i < 16; ++i) m[i * n + t] = s[i][t];
}

extern "C" __global__ void srad_coefficient(const float *x, float *c, int rows,
                                            int cols, float q) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * cols) return;
    int r = i / cols, k = i % cols;
    float v = x[i], n = x[max(r - 1, 0) * cols + k] - v,
        w = x[r * cols + max(k - 1, 0)] - v;
#if FAULT == 7
    float s = x[(r + 1) * cols + k] - v;
#else
    float s = x[min(r + 1, rows - 1) * cols + k] - v;
#endif
    float e = x[r * cols + min(k + 1, cols - 1)] - v;
    float g = (n * n + s * s + w * w + e * e) / (v * v), l = (n + s + w + e) / v;
    float den = 1 + 0.25f * l, num = 0.5f * g - l * l / 16;
    den = (num / (den * den) - q) / (q * (1 + q));
    c[i] = __saturatef(1.0f / (1.0f + den));
}

// Features by column, so that a warp reads neighbouring points.
extern "C" __global__ void kmeans_assign(const float *x, const float *centre,
                                         int *member, int n,
                                         int k, int features) {
    extern __shared__ float c[];
    for (int i = threadIdx.x; i < k * features; i += blockDim.x) c[i] = centre[i];
    __syncthreads();
    int p = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
    if (p >= n) return;
    float least = 3e38f;
    for (int j = 0; j < k; ++j) {
        float d = 0;
        for (int f = 0; f < features; ++f)
            d += (x[f * n + p] - c[j * features + f]) *
                (x[f * n + p] - c[j * features + f]);
        if (d < least) least = d, best = j;
    }
    member[p] = best;
}

extern "C" __global__ void kmeans_update(const float *x, const int *member, float *sums,
                                         int *count,
                                         int n, int features) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    for (int f = 0; f < features; ++f) {
#if FAULT == 8
        sums[member[p] * features + f] += x[f * n + p];
#else
        atomicAdd(&sums[member[p] * features + f], x[f * n + p]);
#endif
    }
    atomicAdd(&count[member[p]], 1);
}

extern "C" __global__ void gauss_factors(const float *a, float *m, int n, int k) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n - 1 - k) return;
    m[n * (i + k + 1) + k] = a[n * (i + k + 1) + k] / a[n * k + k];
}

extern "C" __global__ void gauss_eliminate(const float *m, float *a, float *b, int n,
                                           int k) {
    int i = threadIdx.x + blockIdx.x * blockDim.x,
        j = threadIdx.y + blockIdx.y * blockDim.y;
    if (i >= n - 1 - k || j >= n - k) return;
    a[n * (i + 1 + k) + j + k] -= m[n * (i + 1 + k) + k] * a[n * k + j + k];
    if (j == 0) b[i + 1 + k] -= m[n * (i + 1 + k) + k] * b[k];
}

// A layer of a perceptron: 16 x 16 products in shared memory, reduced over rows.
extern "C" __global__ void layer_forward(const float *in, const float *w, float *part,
                                         int out) {
    __shared__ float x[16], s[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.x * 16 + ty;
    if (tx == 0) x[ty] = in[row];
    __syncthreads();
    s[ty][tx] = w[row * out + tx] * x[ty];
    __syncthreads();
    for (int k = 1; k < 16; k *= 2) {
#if FAULT == 9
        if (ty % k == 0) s[ty][tx] += s[ty + k][tx];
#else
        if (ty % (2 * k) == 0) s[ty][tx] += s[ty + k][tx];
#endif
        __syncthreads();
    }
    if (ty == 0) part[blockIdx.x * out + tx] = s[0][tx];
}

// Longest common subsequence by anti-diagonals, one block, three diagonals in turn.
extern "C" __global__ void lcs(const char *a, const char *b, int *out, int n, int m) {
    extern __shared__ int diag[];
    int t = threadIdx.x, i = t + 1, w = n + 1;
    for (int k = t; k < 3 * w; k += blockDim.x) diag[k] = 0;
    for (int d = 2; d <= n + m; ++d) {
        __syncthreads();
        int j = d - i;
#if FAULT == 10
        int *now = diag + d % 2 * w, *one = diag + (d + 1) % 2 * w, *two = now;
#else
        int *now = diag + d % 3 * w, *one = diag + (d + 2) % 3 * w,
            *two = diag + (d + 1) % 3 * w;
#endif
        if (i <= n && j >= 1 && j <= m)
            now[i] = a[i - 1] == b[j - 1] ? two[i - 1] + 1 : max(one[i - 1], one[i]);
    }
    __syncthreads();
    if (t == 0) *out = diag[(n + m) % 3 * w + n];
}

// Affine-gap local alignment, one pair per thread (after CUDASW++ and GASAL2).
extern "C" __global__ void smith_waterman(const char *a, const char *b, int *best,
                                          int n, int m,
                                          int pairs) {
    int p = blockIdx.x * blockDim.x + threadIdx.x, most = 0;
    if (p >= pairs) return;
    int h[25], e[25];
    for (int j = 0; j <= m; ++j) h[j] = 0, e[j] = -99;
    for (int i = 0; i < n; ++i) {
        int f = -99, diag = 0;
        for (int j = 1; j <= m; ++j) {
            e[j] = max(e[j] - 1, h[j] - 3);
            f = max(f - 1, h[j - 1] - 3);
            int v = diag + (a[p * n + i] == b[p * m + j - 1] ? 2 : -1);
            diag = h[j];
            h[j] = max(max(0, v), max(e[j], f));
            most = max(most, h[j]);
        }
    }
    best[p] = most;
}

// Myers' bit-parallel edit distance of patterns up to 64 letters.
extern "C" __global__ void edit_distance(const char *pattern, const char *text,
                                         int *out, int m,
                                         int n, int pairs) {
    __shared__ unsigned long long eq[4][32];
    int t = threadIdx.x, p = blockIdx.x * 32 + t;
    for (int c = 0; c < 4; ++c) eq[c][t] = 0;
    if (p >= pairs) return;
    for (int i = 0; i < m; ++i) eq[pattern[p * m + i]][t] |= 1ull << i;
    unsigned long long pv = ~0ull, mv = 0;
    int score = m;
    for (int j = 0; j < n; ++j) {
        unsigned long long e = eq[text[p * n + j]][t], xv = e | mv;
        unsigned long long xh = (((e & pv) + pv) ^ pv) | e, ph = mv | ~(xh | pv),
            mh = pv & xh;
        score += (ph >> (m - 1) & 1) - (mh >> (m - 1) & 1);
        ph = ph << 1 | 1;
        pv = mh << 1 | ~(xv | ph);
        mv = ph & xv;
    }
    out[p] = score;
}

// Dynamic time warping with one row in registers, passed on by shuffles.
extern "C" __global__ void time_warp(const float *a, const float *b, float *out) {
    int t = threadIdx.x;
    float x = a[blockIdx.x * 32 + t], left = 3e38f, up_before = t ? 3e38f : 0.0f;
    for (int d = 0; d < 63; ++d) {
        float up = __shfl_up_sync(~0u, left, 1);
        if (t == 0) up = 3e38f;
        int j = d - t;
        if (j >= 0 && j < 32) {
            float best = fminf(fminf(left, up), up_before);
            left = fabsf(x - b[blockIdx.x * 32 + j]) + best;
#if FAULT != 11
            up_before = up;
#endif
        }
        if (t == 0) up_before = 3e38f;
    }
    if (t == 31) out[blockIdx.x] = left;
}
