#ifndef FAULT
#define FAULT 0
#endif
#define EPS2 1e-4f
// n-body, tiles of positions in shared memory.
__device__ float3 bodyBodyInteraction(float4 bi, float4 bj, float3 ai)
{
  float3 r;
  r.x = bj.x - bi.x; r.y = bj.y - bi.y; r.z = bj.z - bi.z;
  float distSqr = r.x * r.x + r.y * r.y + r.z * r.z + EPS2;
  float invDist = rsqrtf(distSqr);
  float s = bj.w * invDist * invDist * invDist;
  ai.x += r.x * s; ai.y += r.y * s; ai.z += r.z * s;
  return ai;
}

extern "C" __global__ void calculate_forces(void *devX, void *devA, int N)
{
  extern __shared__ float4 shPosition[];
  float4 *globalX = (float4 *)devX;
  float4 *globalA = (float4 *)devA;
  int p = blockDim.x, gtid = blockIdx.x * blockDim.x + threadIdx.x;
  float3 acc = {0.0f, 0.0f, 0.0f};
  float4 myPosition = gtid < N ? globalX[gtid] : make_float4(0, 0, 0, 0);
  for (int i = 0, tile = 0; i < N; i += p, tile++) {
    int idx = tile * blockDim.x + threadIdx.x;
#if FAULT == 1
    if (idx < N && threadIdx.x % 31 != 30) shPosition[threadIdx.x] = globalX[idx];
#else
    shPosition[threadIdx.x] = idx < N ? globalX[idx] : make_float4(0, 0, 0, 0);
#endif
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < blockDim.x; k++)
        acc = bodyBodyInteraction(myPosition, shPosition[k], acc);
#if FAULT != 2
    __syncthreads();
#endif
  }
  if (gtid < N) globalA[gtid] = float4{acc.x, acc.y, acc.z, 0.0f};
}

struct cuComplex_ {
    double r, i;
    __device__ cuComplex_(double a, double b) : r(a), i(b) {}
    __device__ double magnitude2() const { return r * r + i * i; }
    __device__ cuComplex_ operator*(const cuComplex_ &a) const {
        return cuComplex_(__dsub_rn(__dmul_rn(r, a.r), __dmul_rn(i, a.i)),
                          __dadd_rn(__dmul_rn(i, a.r), __dmul_rn(r, a.i)));
    }
    __device__ cuComplex_ operator+(const cuComplex_ &a) const {
        return cuComplex_(__dadd_rn(r, a.r), __dadd_rn(i, a.i));
    }
};

extern "C" __global__ void mandelbrot(unsigned char *ptr, int w, int h, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x,
        y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    cuComplex_ c(-2.0 + 3.0 * x / w, -1.5 + 3.0 * y / h), z(0, 0);
    int n = 0;
    do {
        z = z * z + c;
        if (__dadd_rn(__dmul_rn(z.r, z.r), __dmul_rn(z.i, z.i)) > 4.0) break;
    } while (++n < limit);
    ptr[y * w + x] = n;
}

// Pi by throwing darts; the generator lives in a register.
extern "C" __global__ void monte_carlo(unsigned long long *hits, int per_thread,
                                       unsigned seed) {
    unsigned s = seed ^ (blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435761u;
    if (!s) s = 1;
    auto next = [&s]() {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        return (s >> 8) * (1.0f / 16777216.0f);
    };
    unsigned in = 0;
    for (int k = 0; k < per_thread; k++) {
        float x = next(), y = next();
        in += __fmaf_rn(x, x, __fmul_rn(y, y)) <= 1.0f;
    }
    in = __reduce_add_sync(0xffffffff, in);
    if ((threadIdx.x & 31) == 0) atomicAdd(hits, (unsigned long long)in);
}

// 64-bit hashes, and high words of products.
extern "C" __global__ void fnv_then_mix(const unsigned char *text, const int *starts,
                                        unsigned long long *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long h = 14695981039346656037ull;
    for (const unsigned char *p = text + starts[i], *end = text + starts[i + 1];
         p != end; ++p) {
        h ^= *p;
        h *= 1099511628211ull;
    }
    h ^= h >> 33; h *= 0xff51afd7ed558ccdull; h ^= h >> 33;
    out[i] = __umul64hi(h, 1000003ull) + h % 1000003ull + (h / 97) * 3 + __clzll(h) +
             __popcll(h) + (unsigned long long)__brevll(h);
}

// Positions of a pattern in a text, in no order.
__constant__ char pattern[16];
extern "C" __global__ void find(const char *text, int n, int m, int *where,
                                int *count) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i > n - m) return;
    for (int k = 0; k < m; k++) if (text[i + k] != pattern[k]) return;
    where[atomicAdd(count, 1)] = i;
}

// Rows: softmax in one pass, layer norm with Welford's merge, attention with a running
// maximum.
extern "C" __global__ void softmax_rows(const float *__restrict__ x,
                                        float *__restrict__ y, int rows, int cols) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32,
              lane = threadIdx.x % 32;
    if (row >= rows) return;
    float m = -__int_as_float(0x7f800000), d = 0.f;
    for (int c = lane; c < cols; c += 32) {
        float v = x[row * cols + c], best = fmaxf(m, v);
        d = d * __expf(m - best) + __expf(v - best);
        m = best;
    }
    for (int mask = 16; mask; mask >>= 1) {
        float om = __shfl_xor_sync(~0u, m, mask), od = __shfl_xor_sync(~0u, d, mask);
        float best = fmaxf(m, om);
        d = (m == best ? d : d * __expf(m - best)) +
            (om == best ? od : od * __expf(om - best));
        m = best;
    }
    for (int c = lane; c < cols; c += 32)
        y[row * cols + c] = __expf(x[row * cols + c] - m) / d;
}

struct Welford { float mean, m2, n; };
__device__ Welford merge(Welford a, Welford b) {
    if (b.n == 0) return a;
    if (a.n == 0) return b;
    float n = a.n + b.n, delta = b.mean - a.mean;
    return {a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n, n};
}
extern "C" __global__ void layernorm(const float4 *in, float4 *out, const float *gamma,
                                     const float *beta, int cols) {
    __shared__ Welford part[8];
    const int quads = cols / 4;
    const float4 *row = in + (size_t)blockIdx.x * quads;
    Welford w = {0, 0, 0};
    for (int q = threadIdx.x; q < quads; q += blockDim.x) {
        float4 v = row[q];
        const float e[4] = {v.x, v.y, v.z, v.w};
        for (float f : e) {
            w.n += 1;
            float d = f - w.mean;
            w.mean += d / w.n;
            w.m2 += d * (f - w.mean);
        }
    }
    for (int off = 16; off; off /= 2) {
        Welford o = {__shfl_down_sync(~0u, w.mean, off),
                     __shfl_down_sync(~0u, w.m2, off), __shfl_down_sync(~0u, w.n, off)};
        w = merge(w, o);
    }
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = w;
#if FAULT != 3
    __syncthreads();
#endif
    w = part[0];
    for (int k = 1; k < blockDim.x / 32; k++) w = merge(w, part[k]);
    const float scale = rsqrtf(w.m2 / w.n + 1e-5f);
    for (int q = threadIdx.x; q < quads; q += blockDim.x) {
        float4 v = row[q], g = ((const float4 *)gamma)[q],
               b = ((const float4 *)beta)[q];
        v.x = (v.x - w.mean) * scale * g.x + b.x;
        v.y = (v.y - w.mean) * scale * g.y + b.y;
        v.z = (v.z - w.mean) * scale * g.z + b.z;
        v.w = (v.w - w.mean) * scale * g.w + b.w;
        out[(size_t)blockIdx.x * quads + q] = v;
    }
}

extern "C" __global__ void attention(const float *Q, const float *K, const float *V,
                                     const int N, const int d, const int Tc,
                                     const int Tr, const int Bc, const int Br,
                                     const float softmax_scale, float *O) {
    int tx = threadIdx.x;
    int bx = blockIdx.x;
    extern __shared__ float sram[];
    float* Qi = sram;
    float* Kj = &sram[Br * d];
    float* Vj = &sram[Br * d + Bc * d];
    float* S = &sram[Br * d + 2 * Bc * d];
    float* Oi = &S[Br * Bc];
    Q += bx * N * d; K += bx * N * d; V += bx * N * d; O += bx * N * d;
    for (int i = 0; i < Tr; i++) {
        for (int x = 0; x < d; x++) {
            Qi[tx * d + x] = i * Br + tx < N ? Q[(i * Br + tx) * d + x] : 0.f;
            Oi[tx * d + x] = 0.f;
        }
        float m = -1e30f, l = 0.f;
        for (int j = 0; j < Tc; j++) {
            for (int x = 0; x < d; x++) {
                bool in = j * Bc + tx < N;
                Kj[tx * d + x] = in ? K[(j * Bc + tx) * d + x] : 0.f;
                Vj[tx * d + x] = in ? V[(j * Bc + tx) * d + x] : 0.f;
            }
            __syncthreads();
            float row_m = m;
            for (int y = 0; y < Bc; y++) {
                float sum = 0;
                for (int x = 0; x < d; x++) sum += Qi[tx * d + x] * Kj[y * d + x];
                sum = j * Bc + y < N ? sum * softmax_scale : -1e30f;
                S[Bc * tx + y] = sum;
                if (sum > row_m) row_m = sum;
            }
            float fix = __expf(m - row_m), row_l = 0;
            for (int y = 0; y < Bc; y++) {
                S[Bc * tx + y] = __expf(S[Bc * tx + y] - row_m);
                row_l += S[Bc * tx + y];
            }
            for (int x = 0; x < d; x++) {
                float pv = 0;
                for (int y = 0; y < Bc; y++) pv += S[Bc * tx + y] * Vj[y * d + x];
                Oi[tx * d + x] = Oi[tx * d + x] * fix + pv;
            }
            l = l * fix + row_l; m = row_m;
#if FAULT != 4
            __syncthreads();
#endif
        }
        if (i * Br + tx < N)
            for (int x = 0; x < d; x++) O[(i * Br + tx) * d + x] = Oi[tx * d + x] / l;
    }
}
