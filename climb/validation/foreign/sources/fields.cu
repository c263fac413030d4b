// After sailfish-team/sailfish, NVIDIA/cuda-samples, gprMax, hoomd-blue, DualSPHysics
// and others:
// lattices, grids and particles.
#ifndef FAULT
#define FAULT 0
#endif

// D2Q9 BGK, pull scheme on a periodic lattice.
__constant__ int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ float WT[9] = {4 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f,
                            1 / 36.f, 1 / 36.f, 1 / 36.f, 1 / 36.f};
extern "C" __global__ void lbm_d2q9(const float *f, float *g, int W, int H,
                                    float omega) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= W) return;
    float v[9], rho = 0, ux = 0, uy = 0;
#pragma unroll
    for (int k = 0; k < 9; ++k) {
#if FAULT == 1
        int sx = x - CX[k], sy = (y - CY[k] + H) % H;
#else
        int sx = (x - CX[k] + W) % W, sy = (y - CY[k] + H) % H;
#endif
        v[k] = f[(k * H + sy) * W + sx];
        rho += v[k], ux += v[k] * CX[k], uy += v[k] * CY[k];
    }
    ux /= rho, uy /= rho;
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        float cu = 3 * (CX[k] * ux + CY[k] * uy);
        float eq = WT[k] * rho * (1 + cu + 0.5f * cu * cu - 1.5f * (ux * ux + uy * uy));
        g[(k * H + y) * W + x] = v[k] + omega * (eq - v[k]);
    }
}

// Yee's scheme in two dimensions: the magnetic field, then the electric.
extern "C" __global__ void yee_h(const float *ez, float *hx, float *hy, int W, int H,
                                 float c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= W) return;
    int i = y * W + x;
    if (y < H - 1) hx[i] -= c * (ez[i + W] - ez[i]);
#if FAULT == 2
    if (x < W) hy[i] += c * (ez[i + 1] - ez[i]);
#else
    if (x < W - 1) hy[i] += c * (ez[i + 1] - ez[i]);
#endif
}
extern "C" __global__ void yee_e(float *ez, const float *hx, const float *hy, int W,
                                 int H,
                                 float c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < 1 || y < 1 || x >= W - 1 || y >= H - 1) return;
    int i = y * W + x;
    ez[i] += c * (hy[i] - hy[i - 1] - hx[i] + hx[i - W]);
}

// Gauss-Seidel in two colours.
extern "C" __global__ void red_black(float *u, const float *b, int W, int H, int colour,
                                     float w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y + 1;
#if FAULT == 3
    if (x >= W - 1) return;
#else
    if (x >= W - 1 || (x + y) % 2 != colour) return;
#endif
    int i = y * W + x;
    float s = u[i - 1] + u[i + 1] + u[i - W] + u[i + W] - b[i];
    u[i] += w * (0.25f * s - u[i]);
}

extern "C" __global__ void gray_scott(const float *u, const float *v, float *nu,
                                      float *nv, int W,
                                      int H, float feed, float kill) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= W) return;
    int l = (x + W - 1) % W, r = (x + 1) % W, t = (y + H - 1) % H * W,
        b = (y + 1) % H * W;
    int row = y * W, i = row + x;
    float lu = u[row + l] + u[row + r] + u[t + x] + u[b + x] - 4 * u[i];
    float lv = v[row + l] + v[row + r] + v[t + x] + v[b + x] - 4 * v[i],
        uvv = u[i] * v[i] * v[i];
    nu[i] = u[i] + 0.16f * lu - uvv + feed * (1 - u[i]);
    nv[i] = v[i] + 0.08f * lv + uvv - (feed + kill) * v[i];
}

// Semi-Lagrangian advection, bilinear, clamped.
extern "C" __global__ void advect(const float2 *v, const float *q, float *out, int W,
                                  int H,
                                  float dt) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, i = y * W + x;
    if (x >= W) return;
    float px = fminf(fmaxf(x - dt * v[i].x, 0), W - 1.001f);
    float py = fminf(fmaxf(y - dt * v[i].y, 0), H - 1.001f);
    int x0 = px, y0 = py;
    float fx = px - x0, fy = py - y0;
    const float *p = q + y0 * W + x0;
    out[i] = (p[0] * (1 - fx) + p[1] * fx) * (1 - fy) +
        (p[W] * (1 - fx) + p[W + 1] * fx) * fy;
}

// Tridiagonal systems of up to 64 equations, one per block, by cyclic reduction.
extern "C" __global__ void cyclic_reduction(const float *a, const float *b,
                                            const float *c,
                                            const float *d, float *x, int n) {
    __shared__ float sa[64], sb[64], sc[64], sd[64];
    int t = threadIdx.x, i = blockIdx.x * n + t;
    sa[t] = a[i], sb[t] = b[i], sc[t] = c[i], sd[t] = d[i];
    __syncthreads();
    for (int s = 1; s < n; s *= 2) {
        float l = t >= s ? sa[t] / sb[t - s] : 0, r = t + s < n ? sc[t] / sb[t + s] : 0;
        float na = t >= s ? -sa[t - s] * l : 0, nc = t + s < n ? -sc[t + s] * r : 0;
        float nb = sb[t] - (t >= s ? sc[t - s] * l : 0) -
            (t + s < n ? sa[t + s] * r : 0);
        float nd = sd[t] - (t >= s ? sd[t - s] * l : 0) -
            (t + s < n ? sd[t + s] * r : 0);
#if FAULT != 4
        __syncthreads();
#endif
        sa[t] = na, sb[t] = nb, sc[t] = nc, sd[t] = nd;
        __syncthreads();
    }
    x[i] = sd[t] / sb[t];
}

// Lennard-Jones forces of particles sorted by cell, one dimension of cells.
extern "C" __global__ void cell_forces(const float2 *pos, const int *start,
                                       float2 *force, int n,
                                       int cells, float cut2) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = pos[i], f = make_float2(0, 0);
    int cell = p.x;
#if FAULT == 5
    for (int c = cell - 1; c <= cell + 1; ++c)
#else
    for (int c = max(cell - 1, 0); c <= min(cell + 1, cells - 1); ++c)
#endif
        for (int j = start[c]; j < start[c + 1]; ++j) {
            float dx = p.x - pos[j].x, dy = p.y - pos[j].y, r2 = dx * dx + dy * dy;
            if (j == i || r2 >= cut2) continue;
            float s2 = 0.04f / r2, s6 = s2 * s2 * s2, k = 24 * s6 * (2 * s6 - 1) / r2;
            f.x += k * dx, f.y += k * dy;
        }
    force[i] = f;
}

// Density by smoothed particles, tiles of neighbours in shared memory.
extern "C" __global__ void sph_density(const float4 *p, float *rho, int n, float h2) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = i < n ? p[i] : make_float4(0, 0, 0, 0);
    float sum = 0;
    for (int base = 0; base < n; base += 64) {
        int j = base + threadIdx.x;
        tile[threadIdx.x] = j < n ? p[j] : make_float4(9e9f, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < 64; ++k) {
            float4 o = tile[k];
            float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
            float d = h2 - dx * dx - dy * dy - dz * dz;
            if (d > 0) sum += o.w * d * d * d;
        }
#if FAULT != 6
        __syncthreads();
#endif
    }
    if (i < n) rho[i] = sum;
}

// Ising spins in a checkerboard, Metropolis with given random numbers.
extern "C" __global__ void ising(signed char *spin, const float *random, int W, int H,
                                 int colour,
                                 float beta) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= W || (x + y) % 2 != colour) return;
    int i = y * W + x;
    int sum = spin[y * W + (x + 1) % W] + spin[y * W + (x + W - 1) % W] +
              spin[(y + 1) % H * W + x] + spin[(y + H - 1) % H * W + x];
    if (random[i] < expf(-2 * beta * spin[i] * sum)) spin[i] = -spin[i];
}

// Rays, after GPSnoopy/RayTracingInVulkan, embree and nanort: the nearest sphere hit.
extern "C" __global__ void trace_spheres(const float4 *sphere, int count, int *hit,
                                         float *depth,
                                         int W, int H) {
    __shared__ float4 s[16];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (threadIdx.x < count) s[threadIdx.x] = sphere[threadIdx.x];
#if FAULT != 7
    __syncthreads();
#endif
    if (x >= W) return;
    float dx = (x + 0.5f) / W - 0.5f, dy = (y + 0.5f) / H - 0.5f;
    float r = rsqrtf(dx * dx + dy * dy + 1), near = 1e30f;
    int best = -1;
    for (int k = 0; k < count; ++k) {
        float b = (s[k].x * dx + s[k].y * dy + s[k].z) * r;
        float c = s[k].x * s[k].x + s[k].y * s[k].y + s[k].z * s[k].z - s[k].w * s[k].w;
        float q = b * b - c;
        if (q <= 0) continue;
        float t = b - sqrtf(q);
        if (t > 0 && t < near) near = t, best = k;
    }
    hit[y * W + x] = best;
    depth[y * W + x] = near;
}

// Möller and Trumbore, one ray per thread, triangles broadcast.
extern "C" __global__ void triangles_hit(const float *tri, const float *ray, float *out,
                                         int n,
                                         int tris) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float *o = ray + 6 * i, *d = o + 3;
    float best = 1e30f;
    for (int k = 0; k < tris; ++k) {
        const float *a = tri + 9 * k, *b = a + 3, *c = a + 6;
        float e[3], f[3], s[3], p[3], q[3];
        for (int j = 0; j < 3; ++j) e[j] = b[j] - a[j], f[j] = c[j] - a[j],
            s[j] = o[j] - a[j];
        for (int j = 0; j < 3; ++j) {
            int m = (j + 1) % 3, l = (j + 2) % 3;
            p[j] = d[m] * f[l] - d[l] * f[m];
            q[j] = s[m] * e[l] - s[l] * e[m];
        }
        float inv = 1 / (e[0] * p[0] + e[1] * p[1] + e[2] * p[2]);
        float u = inv * (s[0] * p[0] + s[1] * p[1] + s[2] * p[2]);
        float v = inv * (d[0] * q[0] + d[1] * q[1] + d[2] * q[2]);
        float t = inv * (f[0] * q[0] + f[1] * q[1] + f[2] * q[2]);
        if (u >= 0 && v >= 0 && u + v <= 1 && t > 0 && t < best) best = t;
    }
    out[i] = best;
}

// Morton codes, and the range of keys of each inner node of Karras's tree.
__device__ unsigned spread(unsigned v) {
    v = (v * 0x00010001u) & 0xff0000ffu;
    v = (v * 0x00000101u) & 0x0f00f00fu;
    v = (v * 0x00000011u) & 0xc30c30c3u;
    return (v * 0x00000005u) & 0x49249249u;
}
extern "C" __global__ void morton(const float *xyz, unsigned *code, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned c = 0;
    for (int k = 0; k < 3; ++k) {
        unsigned v = fminf(fmaxf(xyz[3 * i + k] * 1024, 0), 1023);
        c |= spread(v) << (2 - k);
    }
    code[i] = c;
}
__device__ int shared_bits(const unsigned *code, int n, int i, int j) {
#if FAULT == 8
    if (j > n) return -1;
#else
    if (j < 0 || j >= n) return -1;
#endif
    return code[i] == code[j] ? 32 + __clz(i ^ j) : __clz(code[i] ^ code[j]);
}
extern "C" __global__ void karras_ranges(const unsigned *code, int2 *range, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - 1) return;
    int d = shared_bits(code, n, i, i + 1) > shared_bits(code, n, i, i - 1) ? 1 : -1;
    int least = shared_bits(code, n, i, i - d), most = 2, l = 0;
    while (shared_bits(code, n, i, i + most * d) > least) most *= 2;
    for (int t = most / 2; t > 0; t /= 2)
        if (shared_bits(code, n, i, i + (l + t) * d) > least) l += t;
    range[i] = make_int2(min(i, i + l * d), max(i, i + l * d));
}
