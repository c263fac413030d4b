// After tspeterkim/flash-attention-minimal, Dao-AILab/flash-attention and
// vllm-project/vllm.
#ifndef FAULT
#define FAULT 0
#endif

// One block per head; tiles of 16 keys and values in shared memory, one thread a query.
extern "C" __global__ void flash_forward(const float *q, const float *k, const float *v,
                                         float *out, float *lse, int N, int tiles,
                                             float scale) {
    const int D = 8, B = 16;
    __shared__ float ks[B][D], vs[B][D];
    int t = threadIdx.x, head = blockIdx.x * N * D;
    for (int qt = 0; qt < tiles; ++qt) {
        int row = qt * B + t;
        float qr[D], acc[D] = {}, m = -3e38f, l = 0;
        for (int d = 0; d < D; ++d) qr[d] = row < N ? q[head + row * D + d] : 0;
        for (int kt = 0; kt < tiles; ++kt) {
            __syncthreads();
            for (int d = 0; d < D; ++d) {
                bool in = kt * B + t < N;
                ks[t][d] = in ? k[head + (kt * B + t) * D + d] : 0;
                vs[t][d] = in ? v[head + (kt * B + t) * D + d] : 0;
            }
#if FAULT != 1
            __syncthreads();
#endif
            float s[B], most = m;
            for (int j = 0; j < B; ++j) {
                s[j] = 0;
                for (int d = 0; d < D; ++d) s[j] += qr[d] * ks[j][d];
#if FAULT == 2
                s[j] *= scale;
#else
                s[j] = kt * B + j < N ? s[j] * scale : -3e38f;
#endif
                most = fmaxf(most, s[j]);
            }
            float keep = __expf(m - most);
            l *= keep;
            for (int d = 0; d < D; ++d) acc[d] *= keep;
            for (int j = 0; j < B; ++j) {
                float p = __expf(s[j] - most);
                l += p;
                for (int d = 0; d < D; ++d) acc[d] += p * vs[j][d];
            }
            m = most;
        }
        if (row >= N) continue;
        for (int d = 0; d < D; ++d) out[head + row * D + d] = acc[d] / l;
        lse[blockIdx.x * N + row] = m + logf(l);
    }
}

// The partial results of several splits of the keys, weighted by their log-sum-exp.
extern "C" __global__ void combine_splits(const float *part, const float *lse,
                                          float *out,
                                          int splits, int rows, int D) {
    int row = blockIdx.x, d = threadIdx.x;
    float most = -3e38f, sum = 0, acc = 0;
    for (int s = 0; s < splits; ++s) most = fmaxf(most, lse[s * rows + row]);
    for (int s = 0; s < splits; ++s) {
        float w = expf(lse[s * rows + row] - most);
        sum += w;
        acc += w * part[(s * rows + row) * D + d];
    }
    out[row * D + d] = acc / sum;
}

extern "C" __global__ void attention_delta(const float *dout, const float *out,
                                           float *delta,
                                           int rows, int D) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, t = threadIdx.x % 8;
    float s = 0;
    if (row < rows)
        for (int d = t; d < D; d += 8) s += dout[row * D + d] * out[row * D + d];
    for (int k = 4; k; k /= 2) s += __shfl_xor_sync(~0u, s, k, 8);
    if (row < rows && t == 0) delta[row] = s;
}

// vLLM: new keys go to the pages that the slot mapping names; -1 is padding.
extern "C" __global__ void reshape_and_cache(const float *key, float *cache,
                                             const int *slot,
                                             int dim, int page) {
    int s = slot[blockIdx.x];
#if FAULT != 3
    if (s < 0) return;
#endif
    for (int i = threadIdx.x; i < dim; i += blockDim.x)
        cache[(s / page * dim + i) * page + s % page] = key[blockIdx.x * dim + i];
}

// One query per sequence over pages of keys and values; one warp per key, then one
// thread per column.
extern "C" __global__ void paged_attention(const float *q, const float *kc,
                                           const float *vc,
                                           const int *table, const int *lens,
                                               float *out,
                                           int page, int max_pages, float scale) {
    extern __shared__ float logit[];
    __shared__ float red[4];
    const int D = 32;
    int seq = blockIdx.x, t = threadIdx.x, lane = t % 32, warp = t / 32,
        len = lens[seq];
    for (int k = warp; k < len; k += 4) {
        int p = table[seq * max_pages + k / page];
        float s = q[seq * D + lane] * kc[(p * D + lane) * page + k % page];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
        if (lane == 0) logit[k] = s * scale;
    }
#if FAULT != 4
    __syncthreads();
#endif
    float most = -3e38f, sum = 0;
    for (int k = 0; k < len; ++k) most = fmaxf(most, logit[k]);
    __syncthreads();
    for (int k = t; k < len; k += 128) sum += logit[k] = expf(logit[k] - most);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) red[warp] = sum;
    __syncthreads();
    sum = red[0] + red[1] + red[2] + red[3];
    if (t >= D) return;
    float acc = 0;
    for (int k = 0; k < len; ++k)
        acc += logit[k] * vc[(table[seq * max_pages + k / page] * D + t) * page +
                             k % page];
    out[seq * D + t] = acc / sum;
}

// Mixture of experts: the tokens of each expert, padded to whole blocks.
extern "C" __global__ void moe_align(const int *expert, int *sorted, int *ends,
                                     int tokens,
                                     int experts, int block) {
    extern __shared__ int count[];
    int t = threadIdx.x;
#if FAULT == 5
    if (t < experts) count[t] = 0;
#else
    if (t <= experts) count[t] = 0;
#endif
    __syncthreads();
    for (int i = t; i < tokens; i += blockDim.x) atomicAdd(&count[expert[i] + 1], 1);
    __syncthreads();
    if (t == 0)
        for (int e = 1; e <= experts; ++e) {
            count[e] = count[e - 1] + (count[e] + block - 1) / block * block;
            ends[e - 1] = count[e];
        }
    __syncthreads();
    if (t >= experts) return;
    int next = count[t];
    for (int i = 0; i < tokens; ++i)
        if (expert[i] == t) sorted[next++] = i;
    for (; next < count[t + 1]; ++next) sorted[next] = tokens;
}
