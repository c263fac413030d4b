// After pytorch/pytorch, cusplibrary/cusplibrary, ginkgo-project/ginkgo,
// moderngpu/moderngpu,
// facebookresearch/faiss, bitsandbytes-foundation/bitsandbytes, dmlc/xgboost,
// NVIDIA/apex.
#ifndef FAULT
#define FAULT 0
#endif

// Columns of ELLPACK are stored one after the other, so that neighbouring rows
// coalesce.
extern "C" __global__ void spmv_ell(const int *col, const float *val, const float *x,
                                    float *y,
                                    int rows, int width, int pitch) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0;
    for (int k = 0; k < width; ++k) {
        int c = col[k * pitch + r];
#if FAULT == 1
        s += val[k * pitch + r] * x[c];
#else
        if (c >= 0) s += val[k * pitch + r] * x[c];
#endif
    }
    y[r] = s;
}

extern "C" __global__ void spmv_dia(const int *offset, const float *val, const float *x,
                                    float *y,
                                    int rows, int cols, int diagonals) {
    __shared__ int off[32];
    if (threadIdx.x < diagonals) off[threadIdx.x] = offset[threadIdx.x];
#if FAULT != 2
    __syncthreads();
#endif
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float s = 0;
    for (int k = 0; k < diagonals; ++k) {
        int c = r + off[k];
        if (c >= 0 && c < cols) s += val[k * rows + r] * x[c];
    }
    y[r] = s;
}

// Coordinates sorted by row: a segmented sum in each warp, an atomic where a row ends.
extern "C" __global__ void spmv_coo(const int *row, const int *col, const float *val,
                                    const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int r = i < n ? row[i] : -1;
    float v = i < n ? val[i] * x[col[i]] : 0;
    for (int d = 1; d < 32; d *= 2) {
        float up = __shfl_up_sync(~0u, v, d);
        int from = __shfl_up_sync(~0u, r, d);
        if (lane >= d && from == r) v += up;
    }
    int after = __shfl_down_sync(~0u, r, 1);
    if (r >= 0 && (lane == 31 || after != r)) {
#if FAULT == 3
        y[r] += v;
#else
        atomicAdd(&y[r], v);
#endif
    }
}

// A lower triangular system: one thread per row, which waits for the rows it needs, in
// block order.
extern "C" __global__ void solve_lower(const int *first, const int *col,
                                       const float *val,
                                       const float *b, float *x, int *ready, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float s = b[r];
    int e = first[r], last = first[r + 1] - 1;
    bool done = false;
    while (!done) {
        while (e < last && atomicAdd(&ready[col[e]], 0)) {
            __threadfence();
            s -= val[e] * x[col[e]];
            ++e;
        }
        if (e == last) {
            x[r] = s / val[last];
#if FAULT != 4
            __threadfence();
#endif
            atomicExch(&ready[r], 1);
            done = true;
        }
    }
}

extern "C" __global__ void embedding_bag(const float *table, const int *index,
                                         const int *offset,
                                         float *out, int bags, int total, int dim) {
    int bag = blockIdx.x, d = threadIdx.x;
    if (d >= dim) return;
    int begin = offset[bag];
#if FAULT == 5
    int end = offset[bag + 1];
#else
    int end = bag + 1 < bags ? offset[bag + 1] : total;
#endif
    float s = 0;
    for (int i = begin; i < end; ++i) s += table[index[i] * dim + d];
    out[bag * dim + d] = end > begin ? s / (end - begin) : 0;
}

// Mean and variance of a channel by Welford's method, merged between threads.
extern "C" __global__ void batch_norm_stats(const float *x, float *mean, float *var,
                                            int N, int C,
                                            int HW) {
    __shared__ float sm[4], sq[4], sn[4];
    int c = blockIdx.x, t = threadIdx.x;
    float m = 0, q = 0, n = 0;
    for (int i = t; i < N * HW; i += 128) {
        float v = x[(i / HW * C + c) * HW + i % HW], d = v - m;
        n += 1;
        m += d / n;
        q += d * (v - m);
    }
    for (int d = 16; d; d /= 2) {
        float m2 = __shfl_xor_sync(~0u, m, d), q2 = __shfl_xor_sync(~0u, q, d);
        float n2 = __shfl_xor_sync(~0u, n, d), all = fmaxf(n + n2, 1), gap = m2 - m;
        q += q2 + gap * gap * n * n2 / all;
        m = (n * m + n2 * m2) / all;
        n += n2;
    }
    if (t % 32 == 0) sm[t / 32] = m, sq[t / 32] = q, sn[t / 32] = n;
#if FAULT != 6
    __syncthreads();
#endif
    if (t) return;
    for (int w = 1; w < 4; ++w) {
        float all = fmaxf(n + sn[w], 1), gap = sm[w] - m;
        q += sq[w] + gap * gap * n * sn[w] / all;
        m += gap * sn[w] / all;
        n += sn[w];
    }
    mean[c] = m;
    var[c] = q / n;
}

extern "C" __global__ void max_pool(const float *x, float *y, int *where, int W, int H,
                                    int w,
                                    int h, int k, int stride, int pad) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h) return;
    int y0 = i / w * stride - pad, x0 = i % w * stride - pad, at = -1;
    float best = -3e38f;
    for (int r = max(y0, 0); r < min(y0 + k, H); ++r)
#if FAULT == 7
        for (int c = max(x0, 0); c < x0 + k; ++c)
#else
        for (int c = max(x0, 0); c < min(x0 + k, W); ++c)
#endif
            if (x[r * W + c] > best) best = x[r * W + c], at = r * W + c;
    y[i] = best;
    where[i] = at;
}

// Boxes that overlap with a better one, as bits: 64 boxes of one block against 64 of
// another.
extern "C" __global__ void nms_mask(const float4 *box, unsigned long long *mask, int n,
                                    float t) {
    __shared__ float4 other[64];
    int row = blockIdx.y * 64 + threadIdx.x, base = blockIdx.x * 64, words = gridDim.x;
    if (base + threadIdx.x < n) other[threadIdx.x] = box[base + threadIdx.x];
#if FAULT != 8
    __syncthreads();
#endif
    if (row >= n) return;
    float4 a = box[row];
    unsigned long long bits = 0;
    for (int k = 0; k < min(64, n - base); ++k) {
        float4 b = other[k];
        float w = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0);
        float h = fmaxf(fminf(a.w, b.w) - fmaxf(a.y, b.y), 0), both = w * h;
        float any = (a.z - a.x) * (a.w - a.y) + (b.z - b.x) * (b.w - b.y) - both;
        if (base + k > row && both > t * any) bits |= 1ull << k;
    }
    mask[row * words + blockIdx.x] = bits;
}

// Expand counts to indices: a search for the source of each output.
extern "C" __global__ void interval_expand(const int *start, int *out, int sources,
                                           int total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
#if FAULT == 9
    int lo = 0, hi = sources + 1;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (start[mid + 1] <= i) lo = mid + 1;
#else
    int lo = 0, hi = sources;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (start[mid] <= i) lo = mid + 1;
#endif
        else hi = mid;
    }
    out[i] = lo - 1;
}

// Runs of equal keys: heads by comparison, positions by a scan of ballots.
extern "C" __global__ void run_heads(const int *key, int *head, int *runs, int n) {
    __shared__ int sums[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    bool first = t < n && (t == 0 || key[t] != key[t - 1]);
    unsigned who = __ballot_sync(~0u, first);
    if (lane == 0) sums[warp] = __popc(who);
#if FAULT != 10
    __syncthreads();
#endif
    int at = __popc(who & (1u << lane) - 1);
    for (int w = 0; w < warp; ++w) at += sums[w];
    if (first) head[at] = t;
    if (t == blockDim.x - 1) *runs = at + first;
}

// Squared distances, 16 queries by 16 centres, tiles of 16 dimensions.
extern "C" __global__ void l2_distance(const float *q, const float *c, float *out,
                                       int nq, int nc,
                                       int dim) {
    __shared__ float a[16][17], b[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx,
        other = blockIdx.x * 16 + ty;
    float s = 0;
    for (int k = 0; k < dim; k += 16) {
        a[ty][tx] = row < nq && k + tx < dim ? q[row * dim + k + tx] : 0;
        b[ty][tx] = other < nc && k + tx < dim ? c[other * dim + k + tx] : 0;
        __syncthreads();
        for (int j = 0; j < 16; ++j) s += (a[ty][j] - b[tx][j]) * (a[ty][j] - b[tx][j]);
#if FAULT != 11
        __syncthreads();
#endif
    }
    if (row < nq && col < nc) out[row * nc + col] = s;
}

// The k smallest of a row by a warp: each round takes the smallest that is left.
extern "C" __global__ void warp_select(const float *x, float *best, int *where, int n,
                                       int k) {
    int lane = threadIdx.x, row = blockIdx.x, last = -1;
    float floor = -3e38f;
    for (int j = 0; j < k; ++j) {
        float v = 3e38f;
        int at = n;
        for (int i = lane; i < n; i += 32) {
            float c = x[row * n + i];
            if ((c > floor || c == floor && i > last) && c < v) v = c, at = i;
        }
        for (int d = 16; d; d /= 2) {
            float v2 = __shfl_xor_sync(~0u, v, d);
            int at2 = __shfl_xor_sync(~0u, at, d);
            if (v2 < v || v2 == v && at2 < at) v = v2, at = at2;
        }
        floor = v, last = at;
#if FAULT == 12
        best[row * k + j] = v + lane;
#else
        if (lane == 0) best[row * k + j] = v, where[row * k + j] = at;
#endif
    }
}

// Blocks of 64 values to 4 bits: the nearest of 16 levels, by a search.
extern "C" __global__ void quantize_nf4(const float *x, const float *level,
                                        float *absmax,
                                        unsigned char *out, int n) {
    __shared__ float part[2];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    float v = i < n ? x[i] : 0, most = fabsf(v);
    for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (t % 32 == 0) part[t / 32] = most;
    __syncthreads();
    most = fmaxf(part[0], part[1]);
    if (t == 0) absmax[blockIdx.x] = most;
    v /= most;
    int q = 0;
    for (int k = 1; k < 16; ++k) q += v > 0.5f * (level[k - 1] + level[k]);
    int high = __shfl_down_sync(~0u, q, 1);
#if FAULT == 13
    out[i / 2] = q | high << 4;
#else
    if (i < n && t % 2 == 0) out[i / 2] = q | high << 4;
#endif
}

// Gradient histograms of a node, in shared memory first.
extern "C" __global__ void gradient_histogram(const unsigned char *bin,
                                              const float2 *grad,
                                              float2 *hist, int n, int features) {
    __shared__ float g[64], h[64];
    int f = blockIdx.x, t = threadIdx.x;
#if FAULT == 14
    if (t < 32) g[t] = h[t] = 0;
#else
    if (t < 64) g[t] = h[t] = 0;
#endif
    __syncthreads();
    for (int i = t; i < n; i += blockDim.x) {
        atomicAdd(&g[bin[i * features + f]], grad[i].x);
        atomicAdd(&h[bin[i * features + f]], grad[i].y);
    }
    __syncthreads();
    if (t < 64) hist[f * 64 + t] = make_float2(g[t], h[t]);
}
