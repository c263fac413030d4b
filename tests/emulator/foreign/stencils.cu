#ifndef FAULT
#define FAULT 0
#endif
#define RADIUS 3
#define BLOCK_SIZE 128
// 1-D with halo, as in the introductory course, guarded for any length.
extern "C" __global__ void stencil_1d(int *in, int *out, int n) {
  __shared__ int temp[BLOCK_SIZE + 2 * RADIUS];
  int gindex = threadIdx.x + blockIdx.x * blockDim.x;
  int lindex = threadIdx.x + RADIUS;
  temp[lindex] = gindex < n ? in[gindex] : 0;
#if FAULT == 1
  if (threadIdx.x < RADIUS - 1) {
#else
  if (threadIdx.x < RADIUS) {
#endif
    temp[lindex - RADIUS] = gindex - RADIUS >= 0 ? in[gindex - RADIUS] : 0;
    temp[lindex + BLOCK_SIZE] = gindex + BLOCK_SIZE < n ? in[gindex + BLOCK_SIZE] : 0;
  }
#if FAULT != 2
  __syncthreads();
#endif
  int result = 0;
  for (int offset = -RADIUS; offset <= RADIUS; offset++)
    result += temp[lindex + offset];
  if (gindex < n) out[gindex] = result;
}

// 3-D, seven points, marching along z with planes in registers and the current one in
// shared memory.
extern "C" __global__ void heat3d(const double *__restrict__ u, double *__restrict__ v,
                                  int nx, int ny, int nz, double c) {
    extern __shared__ double plane[];
    const int px = blockDim.x + 2, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    const int x = blockIdx.x * blockDim.x + threadIdx.x,
              y = blockIdx.y * blockDim.y + threadIdx.y;
    auto at = [=](int i, int j, int k) -> double {
        return i < 0 || j < 0 || k < 0 || i >= nx || j >= ny || k >= nz
                   ? 0.0
                   : u[(size_t(k) * ny + j) * nx + i];
    };
    double below = 0.0, here = at(x, y, 0), above;
    for (int z = 0; z < nz; ++z) {
        above = at(x, y, z + 1);
        plane[ty * px + tx] = here;
        if (threadIdx.x == 0) plane[ty * px] = at(x - 1, y, z);
        if (threadIdx.x == blockDim.x - 1) plane[ty * px + tx + 1] = at(x + 1, y, z);
        if (threadIdx.y == 0) plane[tx] = at(x, y - 1, z);
        if (threadIdx.y == blockDim.y - 1) plane[(ty + 1) * px + tx] = at(x, y + 1, z);
        __syncthreads();
        if (x < nx && y < ny) {
            double sum = plane[ty * px + tx - 1] + plane[ty * px + tx + 1] +
                         plane[(ty - 1) * px + tx] + plane[(ty + 1) * px + tx];
            v[(size_t(z) * ny + y) * nx + x] =
                here + c * (sum + below + above - 6.0 * here);
        }
#if FAULT != 3
        __syncthreads();
#endif
        below = here;
        here = above;
    }
}

// Convolution with weights in constant memory; a 3-D block, one layer of z per colour
// channel.
__constant__ float mask[5][5];
extern "C" __global__ void blur(const unsigned char *src, unsigned char *dst, int w,
                                int h) {
    __shared__ unsigned char t[3][12][12];
    int c = threadIdx.z, x0 = blockIdx.x * 8, y0 = blockIdx.y * 8;
    for (int y = threadIdx.y; y < 12; y += 8)
        for (int x = threadIdx.x; x < 12; x += 8) {
            int gx = min(max(x0 + x - 2, 0), w - 1),
                gy = min(max(y0 + y - 2, 0), h - 1);
            t[c][y][x] = src[(gy * w + gx) * 3 + c];
        }
    __syncthreads();
    int gx = x0 + threadIdx.x, gy = y0 + threadIdx.y;
#if FAULT == 4
    if (gx > w || gy > h) return;
#else
    if (gx >= w || gy >= h) return;
#endif
    float s = 0.5f;
    for (int j = 0; j < 5; ++j)
        for (int i = 0; i < 5; ++i)
            s += mask[j][i] * t[c][threadIdx.y + j][threadIdx.x + i];
    dst[(gy * w + gx) * 3 + c] = (unsigned char)s;
}

// Game of Life on a torus, bytes.
__device__ __forceinline__ int wrap(int v, int n) { return (v + n) % n; }
extern "C" __global__ void life(const bool *old, bool *fresh, int w, int h)
{
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= w * h) return;
    const int x = cell % w, y = cell / w;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) alive += old[wrap(y + dy, h) * w + wrap(x + dx, w)];
    switch (alive) {
    case 2: fresh[cell] = old[cell]; break;
    case 3: fresh[cell] = true; break;
    default: fresh[cell] = false;
    }
}
