// After gunrock/gunrock, sbeamer/gapbs and ECL: graphs in CSR.
#ifndef FAULT
#define FAULT 0
#endif

extern "C" __global__ void sssp_relax(const int *first, const int *next, const int *w,
                                      int *dist,
                                      int *changed, int n) {
    int u = blockIdx.x * blockDim.x + threadIdx.x;
    if (u >= n) return;
    int d = atomicAdd(&dist[u], 0);
    if (d == 1 << 30) return;
    for (int e = first[u]; e < first[u + 1]; ++e)
#if FAULT == 1
        if (d + w[e] < dist[next[e]]) dist[next[e]] = d + w[e];
#else
        if (atomicMin(&dist[next[e]], d + w[e]) > d + w[e]) atomicExch(changed, 1);
#endif
}

extern "C" __global__ void pagerank_pull(const int *first, const int *from,
                                         const float *share,
                                         float *rank, float base, float damp, int n) {
    int v = (blockIdx.x * blockDim.x + threadIdx.x) / 8, t = threadIdx.x % 8;
    float s = 0;
#if FAULT == 2
    for (int e = first[v] + t; e < first[v + 1]; e += 8) s += share[from[e]];
#else
    if (v < n)
        for (int e = first[v] + t; e < first[v + 1]; e += 8) s += share[from[e]];
#endif
    for (int d = 4; d; d /= 2) s += __shfl_down_sync(~0u, s, d, 8);
    if (t == 0 && v < n) rank[v] = base + damp * s;
}

// Union-find with path halving; roots hook onto smaller roots.
__device__ int find_root(int *parent, int v) {
    volatile int *p = parent;
    int at = p[v];
    while (at != p[at]) {
        p[v] = p[at];
        v = at;
        at = p[at];
    }
    return at;
}
extern "C" __global__ void union_edges(const int *a, const int *b, int *parent,
                                       int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int u = a[e], v = b[e];
    while (true) {
        while (int(atomicAdd(&parent[u], 0)) != u) u = atomicAdd(&parent[u], 0);
        while (int(atomicAdd(&parent[v], 0)) != v) v = atomicAdd(&parent[v], 0);
        if (u == v) return;
        if (u < v) { int s = u; u = v; v = s; }
#if FAULT == 3
        if (parent[u] == u) { parent[u] = v; return; }
#else
        if (atomicCAS(&parent[u], u, v) == u) return;
#endif
    }
}
extern "C" __global__ void flatten(int *parent, int *label, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) label[v] = find_root(parent, v);
}

// Triangles by merging sorted neighbours of both ends of an edge.
extern "C" __global__ void triangles(const int *first, const int *next, const int *src,
                                     int edges,
                                     unsigned long long *count) {
    int e = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (e < edges && src[e] < next[e]) {
        int i = first[src[e]], j = first[next[e]];
        int iend = first[src[e] + 1], jend = first[next[e] + 1];
#if FAULT == 4
        while (i <= iend && j <= jend) {
#else
        while (i < iend && j < jend) {
#endif
            int a = next[i], b = next[j];
            found += a == b && a > next[e];
            i += a <= b;
            j += b <= a;
        }
    }
    for (int d = 16; d; d /= 2) found += __shfl_xor_sync(~0u, found, d);
    if (threadIdx.x % 32 == 0 && found) atomicAdd(count, (unsigned long long)found);
}

// Luby's maximal independent set: state 0 open, 1 in, 2 out; reads one array, writes
// the other.
extern "C" __global__ void luby(const int *first, const int *next,
                                const unsigned *priority,
                                const int *state, int *after, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int s = state[v];
    if (s == 0) {
        bool highest = true;
        for (int e = first[v]; e < first[v + 1]; ++e) {
            int u = next[e];
            if (state[u] == 1) s = 2;
            if (state[u] == 0 && priority[u] > priority[v]) highest = false;
        }
        if (s == 0 && highest) s = 1;
    }
    after[v] = s;
}

// Jones-Plassmann colouring, 32 colours at once in a word.
extern "C" __global__ void colour(const int *first, const int *next,
                                  const unsigned *priority,
                                  const int *before, int *after, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int c = before[v];
    if (c < 0) {
        unsigned used = 0;
        bool wait = false;
        for (int e = first[v]; e < first[v + 1]; ++e) {
            int k = before[next[e]];
            if (k >= 0) used |= 1u << k;
            else wait |= priority[next[e]] > priority[v];
        }
        if (!wait) c = __ffs(~used) - 1;
    }
    after[v] = c;
}

// Breadth-first search by levels with warp-aggregated queue appends: one atomic per
// warp.
extern "C" __global__ void bfs_queue(const int *first, const int *next, int *level,
                                     const int *queue, int size, int *out,
                                         int *out_size,
                                     int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int u = i < size ? queue[i] : -1;
    int e = u >= 0 ? first[u] : 0, end = u >= 0 ? first[u + 1] : 0;
    while (__any_sync(~0u, e < end)) {
        bool fresh = e < end && atomicCAS(&level[next[e]], -1, depth) == -1;
        unsigned who = __ballot_sync(~0u, fresh);
        int base = 0;
        if (lane == 0 && who) base = atomicAdd(out_size, __popc(who));
#if FAULT != 5
        base = __shfl_sync(~0u, base, 0);
#endif
        if (fresh) out[base + __popc(who & (1u << lane) - 1)] = next[e];
        ++e;
    }
}

// K-core: vertices of small degree are peeled, their neighbours lose a degree.
extern "C" __global__ void peel(const int *first, const int *next, int *degree,
                                int *removed, int k,
                                int *changed, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || removed[v] || atomicAdd(&degree[v], 0) >= k) return;
    removed[v] = 1;
    atomicExch(changed, 1);
    for (int e = first[v]; e < first[v + 1]; ++e) atomicSub(&degree[next[e]], 1);
}
