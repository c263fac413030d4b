// After aappleby/smhasher, Cyan4973/xxHash, hashcat/hashcat, madler/zlib,
// jedisct1/libsodium,
// DEShawResearch/random123 and imneme/pcg-c: integers, rotations and tables.
#ifndef FAULT
#define FAULT 0
#endif
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ inline u32 rotl(u32 x, int n) { return __funnelshift_l(x, x, n); }

extern "C" __global__ void murmur3(const u32 *data, u32 *out, int n, int words,
                                   u32 seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 h = seed;
    for (int k = 0; k < words; ++k) {
        u32 v = data[i * words + k] * 0xcc9e2d51u;
        h ^= rotl(v, 15) * 0x1b873593u;
        h = rotl(h, 13) * 5 + 0xe6546b64u;
    }
    h ^= words * 4;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    out[i] = h ^ h >> 16;
}

extern "C" __global__ void xxhash32(const u32 *data, u32 *out, int n, int words,
                                    u32 seed) {
    const u32 p1 = 2654435761u, p2 = 2246822519u, p3 = 3266489917u, p4 = 668265263u;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const u32 *d = data + i * words;
    u32 v[4] = {seed + p1 + p2, seed + p2, seed, seed - p1};
    int k = 0;
#if FAULT == 1
    for (; k < words; k += 4)
#else
    for (; k + 4 <= words; k += 4)
#endif
        for (int j = 0; j < 4; ++j) v[j] = rotl(v[j] + d[k + j] * p2, 13) * p1;
    u32 h = rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18) + words * 4;
    for (; k < words; ++k) h = rotl(h + d[k] * p3, 17) * p4;
    h = (h ^ h >> 15) * p2;
    h = (h ^ h >> 13) * p3;
    out[i] = h ^ h >> 16;
}

__constant__ u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7,
        0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc,
        0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351,
        0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
        0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585,
        0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
        0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};

// One block of 64 bytes, already padded, as 16 big-endian words.
extern "C" __global__ void sha256(const u32 *blocks, u32 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 w[16], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, h[8];
    for (int k = 0; k < 16; ++k) w[k] = __byte_perm(blocks[i * 16 + k], 0, 0x0123);
    for (int k = 0; k < 8; ++k) h[k] = s[k];
#pragma unroll
    for (int r = 0; r < 64; ++r) {
        if (r >= 16) {
            u32 a = w[(r + 1) % 16], b = w[(r + 14) % 16];
            w[r % 16] += w[(r + 9) % 16] + (rotl(a, 25) ^ rotl(a, 14) ^ a >> 3) +
                         (rotl(b, 15) ^ rotl(b, 13) ^ b >> 10);
        }
        u32 t = h[7] + (rotl(h[4], 26) ^ rotl(h[4], 21) ^ rotl(h[4], 7)) +
                (h[4] & h[5] ^ ~h[4] & h[6]) + K[r] + w[r % 16];
        u32 u = (rotl(h[0], 30) ^ rotl(h[0], 19) ^ rotl(h[0], 10)) +
                (h[0] & h[1] ^ h[0] & h[2] ^ h[1] & h[2]);
        for (int k = 7; k; --k) h[k] = h[k - 1];
        h[4] += t;
        h[0] = t + u;
    }
    for (int k = 0; k < 8; ++k) out[i * 8 + k] = __byte_perm(s[k] + h[k], 0, 0x0123);
}

// The block builds the table in shared memory.
extern "C" __global__ void crc32(const unsigned char *data, u32 *out, int n,
                                 int bytes) {
    __shared__ u32 table[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) {
        u32 c = k;
        for (int b = 0; b < 8; ++b) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        table[k] = c;
    }
#if FAULT != 2
    __syncthreads();
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 c = ~0u;
    for (int k = 0; k < bytes; ++k) c = table[(c ^ data[i * bytes + k]) & 255] ^ c >> 8;
    out[i] = ~c;
}

__device__ inline u64 rotl64(u64 x, int n) { return x << n | x >> (64 - n); }

// SipHash-2-4 of whole 64-bit words.
extern "C" __global__ void siphash(const u64 *data, u64 *out, int n, int words, u64 k0,
                                   u64 k1) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 a = k0 ^ 0x736f6d6570736575ull, b = k1 ^ 0x646f72616e646f6dull;
    u64 c = k0 ^ 0x6c7967656e657261ull, d = k1 ^ 0x7465646279746573ull;
    for (int k = 0; k <= words + 1; ++k) {
        u64 m = k < words ? data[i * words + k] : k == words ? (u64)words * 8 << 56 : 0;
        int rounds = k <= words ? 2 : 4;
        if (k <= words) d ^= m;
        else c ^= 0xff;
        for (int r = 0; r < rounds; ++r) {
            a += b, b = rotl64(b, 13) ^ a, a = rotl64(a, 32);
            c += d, d = rotl64(d, 16) ^ c;
            a += d, d = rotl64(d, 21) ^ a;
            c += b, b = rotl64(b, 17) ^ c, c = rotl64(c, 32);
        }
        if (k <= words) a ^= m;
    }
    out[i] = a ^ b ^ c ^ d;
}

__device__ inline void quarter(u32 &a, u32 &b, u32 &c, u32 &d) {
    a += b, d = rotl(d ^ a, 16);
    c += d, b = rotl(b ^ c, 12);
    a += b, d = rotl(d ^ a, 8);
    c += d, b = rotl(b ^ c, 7);
}

extern "C" __global__ void chacha20(const u32 *key, const u32 *nonce, const u32 *text,
                                    u32 *out,
                                    int blocks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks) return;
    u32 s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
    for (int k = 0; k < 8; ++k) s[4 + k] = key[k];
    s[12] = i + 1;
    for (int k = 0; k < 3; ++k) s[13 + k] = nonce[k];
    for (int k = 0; k < 16; ++k) x[k] = s[k];
    for (int r = 0; r < 10; ++r) {
        for (int k = 0; k < 4; ++k) quarter(x[k], x[k + 4], x[k + 8], x[k + 12]);
        quarter(x[0], x[5], x[10], x[15]);
        quarter(x[1], x[6], x[11], x[12]);
        quarter(x[2], x[7], x[8], x[13]);
        quarter(x[3], x[4], x[9], x[14]);
    }
    for (int k = 0; k < 16; ++k) out[i * 16 + k] = text[i * 16 + k] ^ (x[k] + s[k]);
}

extern "C" __global__ void philox(uint4 *out, uint2 key, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 c = make_uint4(i, 0, 7, 0);
    for (int r = 0; r < 10; ++r) {
        u32 h0 = __umulhi(0xd2511f53u, c.x), l0 = 0xd2511f53u * c.x;
        u32 h1 = __umulhi(0xcd9e8d57u, c.z), l1 = 0xcd9e8d57u * c.z;
        c = make_uint4(h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0);
        key.x += 0x9e3779b9u, key.y += 0xbb67ae85u;
    }
    out[i] = c;
}

extern "C" __global__ void threefry(uint2 *out, uint2 key, int n) {
    const int turn[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 k[3] = {key.x, key.y, 0x1bd11bdau ^ key.x ^ key.y}, x = i + k[0], y = 3 + k[1];
#pragma unroll
    for (int r = 0; r < 20; ++r) {
        x += y, y = rotl(y, turn[r % 8]) ^ x;
        if (r % 4 == 3) x += k[(r / 4 + 1) % 3], y += k[(r / 4 + 2) % 3] + r / 4 + 1;
    }
    out[i] = make_uint2(x, y);
}

// Every thread jumps to its own position of one sequence, in logarithmic time.
extern "C" __global__ void pcg32(u32 *out, u64 seed, int each) {
    const u64 mul = 6364136223846793005ull, inc = 1442695040888963407ull;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u64 m = mul, c = inc, am = 1, ac = 0;
#if FAULT == 3
    for (u64 d = i * (each - 1); d; d /= 2) {
#else
    for (u64 d = i * each; d; d /= 2) {
#endif
        if (d & 1) am *= m, ac = ac * m + c;
        c = (m + 1) * c;
        m *= m;
    }
    u64 s = am * seed + ac;
    for (int k = 0; k < each; ++k) {
        u32 x = u32((s >> 18 ^ s) >> 27), rot = u32(s >> 59);
        out[i * each + k] = __funnelshift_r(x, x, rot);
        s = s * mul + inc;
    }
}

// Open addressing with linear probing, as in NVIDIA/cuCollections.
extern "C" __global__ void table_insert(const u32 *keys, u32 *slots, u32 *counts, int n,
                                        u32 mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 key = keys[i], at = key * 2654435761u >> 20 & mask;
    while (true) {
        u32 found = atomicCAS(&slots[at], ~0u, key);
        if (found == ~0u || found == key) break;
#if FAULT == 4
        at = at + 1;
#else
        at = at + 1 & mask;
#endif
    }
#if FAULT == 5
    counts[at] += 1;
#else
    atomicAdd(&counts[at], 1u);
#endif
}

extern "C" __global__ void table_find(const u32 *keys, const u32 *slots,
                                      const u32 *counts,
                                      u32 *out, int n, u32 mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 at = keys[i] * 2654435761u >> 20 & mask;
    while (slots[at] != keys[i] && slots[at] != ~0u) at = at + 1 & mask;
    out[i] = slots[at] == ~0u ? 0 : counts[at];
}

extern "C" __global__ void bloom(const u32 *keys, u32 *bits, int n, u32 words) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (u32 h = 1; h <= 3; ++h) {
        u32 bit = (keys[i] * (2 * h + 1) ^ keys[i] >> 7 * h) % (words * 32);
        atomicOr(&bits[bit / 32], 1u << bit % 32);
    }
}
