// After opencv/opencv (modules/cudaimgproc, cudafilters, cudawarping) and
// NVIDIA/cuda-samples.
#ifndef FAULT
#define FAULT 0
#endif
typedef unsigned char u8;

extern "C" __global__ void sobel(const u8 *x, u8 *y, int W, int H) {
    __shared__ u8 s[10][34];
    int bx = blockIdx.x * 32 - 1, by = blockIdx.y * 8 - 1;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 340; i += 256) {
        int cx = min(max(bx + i % 34, 0), W - 1), cy = min(max(by + i / 34, 0), H - 1);
        s[i / 34][i % 34] = x[cy * W + cx];
    }
#if FAULT != 1
    __syncthreads();
#endif
    int c = threadIdx.x + 1, r = threadIdx.y + 1, px = bx + c, py = by + r;
    if (px >= W || py >= H) return;
    int h = s[r - 1][c + 1] + 2 * s[r][c + 1] + s[r + 1][c + 1] - s[r - 1][c - 1] -
            2 * s[r][c - 1] - s[r + 1][c - 1];
    int v = s[r - 1][c - 1] + 2 * s[r - 1][c] + s[r - 1][c + 1] - s[r + 1][c - 1] -
            2 * s[r + 1][c] - s[r + 1][c + 1];
    y[py * W + px] = min(abs(h) + abs(v), 255);
}

__device__ inline void order(u8 &a, u8 &b) {
    u8 lo = min(a, b);
    b = max(a, b);
    a = lo;
}
extern "C" __global__ void median3(const u8 *x, u8 *y, int W, int H) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / W, c = i % W;
    if (i >= W * H) return;
    u8 p[9];
    for (int k = 0; k < 9; ++k)
        p[k] = x[min(max(r + k / 3 - 1, 0), H - 1) * W + min(max(c + k % 3 - 1, 0),
            W - 1)];
    for (int end = 8; end >= 4; --end)
        for (int k = 0; k < end; ++k) order(p[k], p[k + 1]);
    y[i] = p[4];
}

// Cumulative histogram of a block, then a lookup for each pixel.
extern "C" __global__ void equalise_table(const int *hist, u8 *table, int total) {
    __shared__ int s[256];
    int t = threadIdx.x, least = 0;
    s[t] = hist[t];
    for (int d = 1; d < 256; d *= 2) {
        __syncthreads();
        int v = t >= d ? s[t - d] : 0;
#if FAULT != 2
        __syncthreads();
#endif
        s[t] += v;
    }
    __syncthreads();
    while (least < 255 && s[least] == 0) ++least;
    int base = s[least];
    table[t] = max(0, s[t] - base) * 255 / max(1, total - base);
}
extern "C" __global__ void apply_table(const uchar4 *x, const u8 *table, uchar4 *y,
                                       int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    uchar4 v = x[i];
    y[i] = make_uchar4(table[v.x], table[v.y], table[v.z], table[v.w]);
}

// Integral image, rows then columns, warp by warp.
extern "C" __global__ void integral_rows(const u8 *x, int *y, int W) {
    int lane = threadIdx.x, carry = 0;
    for (int base = 0; base < W; base += 32) {
        int c = base + lane, v = c < W ? x[blockIdx.x * W + c] : 0;
        for (int d = 1; d < 32; d *= 2) {
            int up = __shfl_up_sync(~0u, v, d);
#if FAULT == 3
            v += up;
#else
            if (lane >= d) v += up;
#endif
        }
        v += carry;
        if (c < W) y[blockIdx.x * W + c] = v;
        carry = __shfl_sync(~0u, v, 31);
    }
}
extern "C" __global__ void integral_columns(int *y, int W, int H) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= W) return;
    for (int r = 1, sum = y[c]; r < H; ++r) y[r * W + c] = sum += y[r * W + c];
}

extern "C" __global__ void bilateral(const float *x, float *y, int W, int H, int R,
                                     float space,
                                     float range) {
    int px = blockIdx.x * blockDim.x + threadIdx.x,
        py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= W || py >= H) return;
    float c = x[py * W + px], sum = 0, weight = 0;
    for (int dy = -R; dy <= R; ++dy)
        for (int dx = -R; dx <= R; ++dx) {
            int qx = px + dx, qy = py + dy;
#if FAULT == 4
            if (qx < 0 || qy < 0 || qx > W || qy > H) continue;
#else
            if (qx < 0 || qy < 0 || qx >= W || qy >= H) continue;
#endif
            float v = x[qy * W + qx];
            float w = __expf(space * (dx * dx + dy * dy) + range * (v - c) * (v - c));
            sum += w * v;
            weight += w;
        }
    y[py * W + px] = sum / weight;
}

// Patches of 3 x 3, search windows of 5 x 5.
extern "C" __global__ void non_local_means(const float *x, float *y, int W, int H,
                                           float h) {
    int px = blockIdx.x * blockDim.x + threadIdx.x,
        py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= W - 3 || py >= H - 3 || px < 3 || py < 3) return;
    float sum = 0, weight = 0;
    for (int j = 0; j < 25; ++j) {
        int q = (py + j / 5 - 2) * W + px + j % 5 - 2;
        float d = 0;
        for (int k = 0; k < 9; ++k) {
            int o = (k / 3 - 1) * W + k % 3 - 1;
            d += (x[py * W + px + o] - x[q + o]) * (x[py * W + px + o] - x[q + o]);
        }
        float w = __expf(-h * d);
        sum += w * x[q];
        weight += w;
    }
    y[py * W + px] = sum / weight;
}

extern "C" __global__ void resize_linear(const uchar4 *x, uchar4 *y, int W, int H,
                                         int w, int h) {
    int px = blockIdx.x * blockDim.x + threadIdx.x,
        py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= w || py >= h) return;
    float sx = (px + 0.5f) * W / w - 0.5f, sy = (py + 0.5f) * H / h - 0.5f;
    int x0 = floorf(sx), y0 = floorf(sy);
    float fx = sx - x0, fy = sy - y0;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < 4; ++k) {
        int cx = min(max(x0 + k % 2, 0), W - 1), cy = min(max(y0 + k / 2, 0), H - 1);
        uchar4 v = x[cy * W + cx];
        float t = (k % 2 ? fx : 1 - fx) * (k / 2 ? fy : 1 - fy);
        sum.x += t * v.x, sum.y += t * v.y, sum.z += t * v.z, sum.w += t * v.w;
    }
    y[py * w + px] = make_uchar4(__float2int_rn(sum.x), __float2int_rn(sum.y),
                                 __float2int_rn(sum.z), __float2int_rn(sum.w));
}

// Nearest seeds by jump flooding: a step of a given length.
extern "C" __global__ void jump_flood(const int *from, int *to, int W, int H,
                                      int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / W, c = i % W;
    if (i >= W * H) return;
    int best = -1, least = 1 << 30;
    for (int k = 0; k < 9; ++k) {
        int y = r + (k / 3 - 1) * step, x = c + (k % 3 - 1) * step;
        if (x < 0 || y < 0 || x >= W || y >= H) continue;
        int s = from[y * W + x];
        if (s < 0) continue;
        int d = (s / W - r) * (s / W - r) + (s % W - c) * (s % W - c);
        if (d < least || d == least && s < best) least = d, best = s;
    }
#if FAULT == 5
    const_cast<int *>(from)[i] = best;
#endif
    to[i] = best;
}

// Van Herk: erosion of rows by windows of 2 R + 1, two scans of each segment.
extern "C" __global__ void erode_rows(const u8 *x, u8 *y, int W, int R) {
    extern __shared__ u8 s[];
    int k = 2 * R + 1, n = blockDim.x * k, t = threadIdx.x;
    u8 *ahead = s, *back = s + n;
    const u8 *row = x + blockIdx.x * W;
    u8 v = 255;
    for (int i = t * k; i < t * k + k; ++i)
        ahead[i] = v = min(v, i - R >= 0 && i - R < W ? row[i - R] : (u8)255);
    v = 255;
    for (int i = t * k + k - 1; i >= t * k; --i)
        back[i] = v = min(v, i - R >= 0 && i - R < W ? row[i - R] : (u8)255);
#if FAULT != 6
    __syncthreads();
#endif
    for (int i = t; i < W; i += blockDim.x) y[blockIdx.x * W + i] = min(back[i],
        ahead[i + 2 * R]);
}
