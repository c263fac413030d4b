"""Common mistakes in CUDA kernels, and the error that the emulator raises for each.

In a body, `@@` stands for the wrong part; grids, blocks and shared memory may be pairs (wrong, mended).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from climb.emulator import (
    BarrierDivergence,
    EndlessLoop,
    LaunchError,
    Misaligned,
    OutOfBounds,
    Race,
    Uninitialised,
    WarpMismatch,
)
from climb.validation.faults import Fault, Freed, Fresh, Null, Pair

#: Steps after which the emulator reports one of these kernels as an endless loop.
STEPS = 3000


def floats(*shape: int) -> np.ndarray:
    """Zeros of float32."""
    return np.zeros(shape, np.float32)


def ints(*shape: int) -> np.ndarray:
    """Zeros of int32."""
    return np.zeros(shape, np.int32)


def given(*values: Any) -> list[Any]:
    """Arguments: a shape becomes zeros of float32, anything else stays as it is."""
    return [floats(*value) if isinstance(value, tuple) else value for value in values]


REDUCE = """__global__ void k(const float* a, float* o) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = a[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 128; d >= 64; d /= 2) {
        if (t < d) s[t] += s[t + d];
        @@
    }
    if (t == 0) o[blockIdx.x] = s[0];
}"""

HALO = """__global__ void k(const float* a, float* o, int n) {
    __shared__ float s[66];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t + 1] = a[i];
    @@
    __syncthreads();
    o[i] = s[t] + s[t + 1] + s[t + 2];
}"""

FAULTS: list[Fault] = [
    # Bounds ----------------------------------------------------------------------------------------------------------
    Fault("index off by one in x", "__global__ void k(float* o, int n) { int i = blockIdx.x * 32 + threadIdx.x;\n"
          "if (i @@ n)\no[i] = 1; }", "<=", "<", OutOfBounds,
          r"write of 4 bytes at 0x[0-9a-f]+, right after the end of argument 0 \(400 bytes\)", "o[i] = 1; }", (3, 0, 0),
          (4, 0, 0), 1, "argument 0", grid=4, args=given((100,), 100), details={"distance": 0}),
    Fault("index off by one in y", "__global__ void k(float* o, int w, int h) { int x = threadIdx.x, y = threadIdx.y;\n"
          "if (x < w && y @@ h)\no[y * w + x] = 1; }", "<=", "<", OutOfBounds, "right after the end of argument 0",
          "o[y * w + x] = 1; }", (0, 0, 0), (0, 3, 0), 5, "argument 0", threads=(8, 4), args=given((15,), 5, 3),
          details={"distance": 0}),
    Fault("no check in the last block", "__global__ void k(const float* a, float* o, int n) {\n"
          "int i = blockIdx.x * 64 + threadIdx.x;\n@@\no[i] = 2 * a[i]; }", "", "if (i < n)", OutOfBounds,
          r"read of 4 bytes at .*, right after the end of argument 0 \(600 bytes\)", "o[i] = 2 * a[i]; }", (2, 0, 0),
          (22, 0, 0), 42, "argument 0", grid=3, threads=64, args=given((150,), (150,), 150)),
    Fault("no check of an odd width", "__global__ void k(const float2* a, float2* o, int n) { int i = threadIdx.x;\n"
          "if (@@)\no[i] = a[i]; }", "2 * i < n", "2 * i + 1 < n", OutOfBounds,
          r"where only 4 bytes of argument 0 \(36 bytes\) are left", "o[i] = a[i]; }", thread=(4, 0, 0), lanes=1,
          allocation="argument 0", args=given((9,), (9,), 9), details={"distance": 0}),
    Fault("negative index", "__global__ void k(const float* a, float* o) { int i = threadIdx.x;\n@@\n"
          "o[i] = a[i] - a[i - 1]; }", "", "if (i > 0)", OutOfBounds, "4 bytes before the start of argument 0",
          "o[i] = a[i] - a[i - 1]; }", lanes=1, allocation="argument 0", args=given((32,), (32,)),
          details={"distance": 4}),
    Fault("stride overflows past 2^31", "__global__ void k(float* o, int pitch) { int row = blockIdx.x;\n"
          "if (row % 50000 == 0)\no[@@ * (row / 50000)] = 1; }", "row * pitch", "0ll * row * pitch", OutOfBounds,
          r"7179869184 bytes before the start of argument 0", "o[row * pitch * (row / 50000)] = 1; }", (50000, 0, 0),
          lanes=1, allocation="argument 0", grid=50001, threads=1, args=given((64,), 50000),
          details={"distance": 7179869184}),
    Fault("swapped grid dimensions", "__global__ void k(float* o, int w) {\nint x = blockIdx.x * 8 + threadIdx.x, "
          "y = blockIdx.y * 4 + threadIdx.y;\no[y * w + x] = 1; }", "", "", OutOfBounds,
          r"right after the end of argument 0 \(1024 bytes\)", "o[y * w + x] = 1; }", (0, 2, 0), (0, 0, 0), None,
          "argument 0", grid=Pair((2, 4), (4, 2)), threads=(8, 4), args=given((8, 32), 32), details={"distance": 0}),
    Fault("a grid with a block too many", "__global__ void k(float* o) {\no[blockIdx.x * 32 + threadIdx.x] = 1; }", "",
          "", OutOfBounds, "right after the end", "o[blockIdx.x * 32 + threadIdx.x] = 1; }", (2, 0, 0), (0, 0, 0), 32,
          "argument 0", grid=Pair(3, 2), args=given((64,))),
    Fault("rows and columns swapped", "__global__ void k(float* o, int w, int h) {\n"
          "if (threadIdx.x < w && threadIdx.y < h)\no[@@] = 1; }", "threadIdx.x * w + threadIdx.y",
          "threadIdx.y * w + threadIdx.x", OutOfBounds, r"after the end of argument 0 \(512 bytes\)",
          "o[threadIdx.x * w + threadIdx.y] = 1; }", thread=(8, 0, 0), lanes=64, allocation="argument 0",
          threads=(16, 8), args=given((8, 16), 16, 8), details={"distance": 0}),
    Fault("bytes where elements are meant", "__global__ void k(float* o, int n) {\n"
          "float* p = o + n * @@;\np[threadIdx.x] = 1; }", "sizeof(float)", "1", OutOfBounds,
          "256 bytes after the end of argument 0", "p[threadIdx.x] = 1; }", lanes=32, allocation="argument 0",
          args=given((64,), 32), details={"distance": 256}),
    Fault("use after free", "__global__ void k(float* o) {\no[threadIdx.x + 4] @@ 1; }", "=", "=", OutOfBounds,
          r"byte 16 of scratch \(512 bytes\), which has been freed", "o[threadIdx.x + 4] = 1; }", lanes=32,
          allocation="scratch", args=[Freed(512)], details={"distance": 0}),
    Fault("null pointer", "__global__ void k(float* o) {\no[threadIdx.x] = 1; }", "", "", OutOfBounds,
          "write of 4 bytes at 0x0", "o[threadIdx.x] = 1; }", lanes=32,
          args=[Null(128)]),
    Fault("off by one in shared padding", "__global__ void k(float* o) {\n__shared__ float s[32 * @@];\n"
          "int x = threadIdx.x, y = threadIdx.y;\ns[y * 33 + x] = 1;\n__syncthreads();\n"
          "o[y * 32 + x] = s[x * 33 + y]; }",
          "32", "33", OutOfBounds, "right after the end of the 4096 bytes of shared memory", "s[y * 33 + x] = 1;",
          thread=(1, 31, 0), lanes=31, threads=(32, 32), args=given((1024,)), details={"distance": 0}),
    Fault("dynamic shared memory too small", "__global__ void k(float* o) {\nextern __shared__ float s[];\n"
          "s[threadIdx.x] = 1;\n__syncthreads();\no[threadIdx.x] = s[threadIdx.x]; }", "", "", OutOfBounds,
          "right after the end of the 64 bytes of shared memory", "s[threadIdx.x] = 1;", thread=(16, 0, 0), lanes=16,
          shared=Pair(64, 128), args=given((32,)), details={"distance": 0}),
    Fault("local array too small", "__global__ void k(const int* a, int* o) {\nint mine[4];\n"
          "for (int i = 0; i < 4; ++i) mine[i] = a[i];\no[threadIdx.x] = mine[a[4] @@]; }", "+ threadIdx.x",
          "+ threadIdx.x % 4", OutOfBounds, "right after the end of the 16 bytes of local memory",
          "o[threadIdx.x] = mine[a[4] + threadIdx.x]; }", thread=(4, 0, 0), lanes=28,
          args=[ints(5), ints(32)], details={"distance": 0}),
    # Alignment -------------------------------------------------------------------------------------------------------
    Fault("misaligned float4", "__global__ void k(const float* a, float4* o) {\n"
          "o[threadIdx.x] = *(const float4*)(a + 4 * threadIdx.x @@); }", "+ 1", "", Misaligned,
          r"16-byte load at 0x[0-9a-f]+, byte 4 of argument 0, which is no multiple of 16",
          "o[threadIdx.x] = *(const float4*)(a + 4 * threadIdx.x + 1); }", lanes=32, allocation="argument 0",
          args=given((132,), (128,)), details={"width": 16}),
    Fault("rows of an odd pitch read as float2", "__global__ void k(const float* a, float2* o, int pitch) {\n"
          "o[threadIdx.y * 4 + threadIdx.x] = ((const float2*)(a + threadIdx.y * (pitch @@)))[threadIdx.x]; }", "",
          "+ 1", Misaligned, "8-byte load .* byte 36 of argument 0", "o[threadIdx.y * 4 + threadIdx.x] = ((const "
          "float2*)(a + threadIdx.y * (pitch )))[threadIdx.x]; }", thread=(0, 1, 0), lanes=4, allocation="argument 0",
          threads=(4, 2), args=given((20,), (16,), 9), details={"width": 8}),
    # Barriers --------------------------------------------------------------------------------------------------------
    Fault("barrier in divergent code", "__global__ void k(float* o) {\nif (threadIdx.x < @@)\n__syncthreads();\n"
          "o[threadIdx.x] = 1; }", "40", "64", BarrierDivergence,
          "40 of 64 threads of the block wait at this barrier, 24 have left the kernel", "__syncthreads();", lanes=40,
          threads=64, args=given((64,)), details={"waiting": 40, "exited": 24}),
    Fault("exit before a barrier", "__global__ void k(float* o, int n) {\nint i = blockIdx.x * 32 + threadIdx.x;\n"
          "@@\n__syncthreads();\nif (i < n) o[i] = 1; }", "if (i >= n) return;", "", BarrierDivergence,
          "8 of 32 threads of the block wait at this barrier, 24 have left", "__syncthreads();", (1, 0, 0), lanes=8,
          grid=2, args=given((40,), 40), details={"waiting": 8, "exited": 24}),
    Fault("two barriers for one", "__global__ void k(float* o) {\nif (threadIdx.x @@)\n{ o[threadIdx.x] = 1; "
          "__syncthreads(); }\nelse\n{ o[threadIdx.x] = 2; __syncthreads(); o[threadIdx.x] = 3; } }", "% 2", "< 64",
          BarrierDivergence, "32 of 64 threads .*, 32 wait at line [36]", None, thread=None, lanes=32, threads=64,
          args=given((64,)), details={"waiting": 32, "exited": 0}),
    Fault("a barrier in a loop of uneven length", "__global__ void k(float* o) {\nfor (int i = 0; i < @@; ++i)\n"
          "__syncthreads();\no[threadIdx.x] = 1; }", "1 + threadIdx.x / 32", "2", BarrierDivergence,
          "32 of 64 threads of the block wait at this barrier, 32 have left", "__syncthreads();", thread=(32, 0, 0),
          lanes=32, threads=64, args=given((64,))),
    # Races in shared memory ------------------------------------------------------------------------------------------
    Fault("barrier dropped after loading", "__global__ void k(const float* a, float* o) {\n__shared__ float s[64];\n"
          "int t = threadIdx.x;\ns[t] = a[t];\n@@\no[t] = s[63 - t]; }", "", "__syncthreads();", Race,
          "this read of byte 252 of s, which thread .63,0,0. writes at fault.cu:4.*no __syncthreads",
          "o[t] = s[63 - t]; }",
          lanes=64, threads=64, args=given((64,), (64,)), details={"name": "s", "offset": 252, "space": "shared"},
          other="s[t] = a[t];"),
    Fault("barrier dropped in a reduction", REDUCE, "", "__syncthreads();", Race,
          "read of byte 256 of s, which thread .64,0,0. writes at .*no __syncthreads", "if (t < d) s[t] += s[t + d];",
          lanes=None, grid=2, threads=256, args=given((512,), (2,)), details={"offset": 256},
          other="if (t < d) s[t] += s[t + d];"),
    Fault("barrier dropped before the tile is loaded again", "__global__ void k(const float* a, float* o) {\n"
          "__shared__ float s[64];\nint t = threadIdx.x; float sum = 0;\nfor (int i = 0; i < 3; ++i) {\n"
          "s[t] = a[64 * i + t];\n__syncthreads();\nsum += s[63 - t];\n@@ }\no[t] = sum; }", "", "__syncthreads();",
          Race, "this write of byte 0 of s, which thread .63,0,0. reads", "s[t] = a[64 * i + t];", lanes=64, threads=64,
          args=given((192,), (64,)), details={"offset": 0}, other="sum += s[63 - t];"),
    Fault("counter in shared memory without atomics", "__global__ void k(int* o) {\n__shared__ int n;\n"
          "if (threadIdx.x == 0) n = 0;\n__syncthreads();\n@@;\n__syncthreads();\nif (threadIdx.x == 0) o[0] = n; }",
          "n += 1", "atomicAdd(&n, 1)", Race, "this write of byte 0 of n, which thread .* reads", "n += 1;", lanes=64,
          threads=64, args=[ints(1)], details={"offset": 0}, other="n += 1;"),
    Fault("histogram read before all have counted", "__global__ void k(const int* a, int* o) {\n"
          "__shared__ int bins[64];\nint t = threadIdx.x;\nbins[t] = 0;\n__syncthreads();\n"
          "atomicAdd(&bins[a[t] + t / 2], 1);\n@@\no[t] = bins[t]; }", "", "__syncthreads();", Race,
          "this read of byte 0 of bins, which thread .* changes by an atomic operation", "o[t] = bins[t]; }", lanes=32,
          threads=64, args=[ints(64), ints(64)], other="atomicAdd(&bins[a[t] + t / 2], 1);"),
    Fault("histogram cleared while others count", "__global__ void k(const int* a, int* o) {\n"
          "__shared__ int bins[64];\nint t = threadIdx.x;\nbins[t] = 0;\n@@\natomicAdd(&bins[63 - t + a[t]], 1);\n"
          "__syncthreads();\no[t] = bins[t]; }", "", "__syncthreads();", Race,
          "this atomic operation of byte 252 of bins, which thread .63,0,0. writes",
          "atomicAdd(&bins[63 - t + a[t]], 1);", lanes=64, threads=64, args=[ints(64), ints(64)],
          other="bins[t] = 0;"),
    Fault("all threads write their own value to one place", "__global__ void k(float* o) {\n__shared__ float s;\n"
          "@@ s = threadIdx.x;\n__syncthreads();\no[threadIdx.x] = s; }", "", "if (threadIdx.x == 5)", Race,
          "threads write different values to byte 0 of s at once; the other one is thread", "s = threadIdx.x;",
          threads=64, args=given((64,)), details={"offset": 0}),
    Fault("missing __syncwarp in the last warp of a reduction", """__global__ void k(const float* a, float* o) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    if (t < 32) {
        float v = s[t] + s[t + 32];
        s[t] = v;
        @@
        v += s[t + 16];
        if (t == 0) o[0] = v;
    }
}""", "", "__syncwarp();", Race, "read of byte 64 of s, which thread .16,0,0. writes .*no __syncwarp lies between",
          "v += s[t + 16];", lanes=16, threads=64, args=given((64,), (1,)),
          details={"offset": 64, "same_warp": True}, other="s[t] = v;"),
    Fault("volatile instead of __syncwarp", """__global__ void k(const float* a, float* o) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = a[t]; s[t + 32] = a[t + 32];
    volatile float* p = s;
    p[t] = p[t] + p[t + 32];
    @@
    float v = p[t < 16 ? t + 16 : t];
    __syncwarp();
    if (t < 16) p[t] = p[t] + v;
    if (t == 0) o[0] = p[0];
}""", "", "__syncwarp();", Race, "read of byte 64 of s, which thread .16,0,0. writes .*no __syncwarp",
          "float v = p[t < 16 ? t + 16 : t];", lanes=16, args=given((64,), (1,)), details={"same_warp": True},
          other="p[t] = p[t] + p[t + 32];"),
    Fault("warps that take turns without a barrier", "__global__ void k(float* o) {\n__shared__ float s[32];\n"
          "int t = threadIdx.x;\nif (t < 32) s[t] = t;\n@@\nif (t >= 32) o[t - 32] = s[t - 32]; }", "__syncwarp();",
          "__syncthreads();", Race, "this read of byte 0 of s, which thread .0,0,0. writes .*no __syncthreads",
          "if (t >= 32) o[t - 32] = s[t - 32]; }", thread=(32, 0, 0), lanes=32, threads=64, args=given((32,)),
          details={"same_warp": False}, other="if (t < 32) s[t] = t;"),
    Fault("transpose through shared memory without a barrier", "__global__ void k(const float* a, float* o) {\n"
          "__shared__ float s[16][17];\nint x = threadIdx.x, y = threadIdx.y;\ns[y][x] = a[y * 16 + x];\n@@\n"
          "o[y * 16 + x] = s[x][y]; }", "", "__syncthreads();", Race,
          "this read of byte 68 of s, which thread .0,1,0. ",
          "o[y * 16 + x] = s[x][y]; }", thread=(1, 0, 0), lanes=None, grid=3, threads=(16, 16),
          args=given((256,), (256,)), other="s[y][x] = a[y * 16 + x];"),
    # Reads of what nothing has written -------------------------------------------------------------------------------
    Fault("halo not loaded", HALO, "if (t == 0) s[0] = i ? a[i - 1] : 0;",
          "if (t == 0) s[0] = i ? a[i - 1] : 0; if (t == 63) s[65] = i + 1 < n ? a[i + 1] : 0;", Uninitialised,
          "a load reads byte 260 of s in shared memory, which nothing has written",
          "o[i] = s[t] + s[t + 1] + s[t + 2];", thread=(63, 0, 0), lanes=2, grid=2, threads=64,
          args=given((128,), (128,), 128), details={"offset": 260, "name": "s"}),
    Fault("a loop that loads with a double increment", "__global__ void k(const float* a, float* o) {\n"
          "__shared__ float s[128];\nfor (int i = threadIdx.x; i < 128; i += 32) {\n"
          "s[i] = a[i];\n@@ }\n__syncthreads();\n"
          "for (int i = threadIdx.x; i < 128; i += 32)\no[i] = s[127 - i]; }", "i += 32;", "", Uninitialised,
          "byte 508 of s in shared memory", "o[i] = s[127 - i]; }", lanes=32, args=given((128,), (128,)),
          details={"offset": 508}),
    Fault("tail of the tile not filled", "__global__ void k(const float* a, float* o, int n) {\n"
          "__shared__ float s[64];\nint t = threadIdx.x, i = blockIdx.x * 64 + t;\nif (i < n) s[t] = a[i];\n@@\n"
          "__syncthreads();\nfloat sum = 0; for (int j = 0; j < 64; ++j)\nsum += s[j];\n"
          "if (t == 0) o[blockIdx.x] = sum; }", "", "else s[t] = 0;", Uninitialised,
          "byte 144 of s in shared memory", "sum += s[j];", (1, 0, 0), lanes=1, grid=2, threads=64,
          args=given((100,), (2,), 100), details={"offset": 144}),
    Fault("a shared counter that is not cleared", "__global__ void k(int* o) {\n__shared__ int n;\n@@\n"
          "__syncthreads();\natomicAdd(&n, 1);\n__syncthreads();\no[0] = n; }", "", "if (threadIdx.x == 0) n = 0;",
          Uninitialised, "an atomic reads byte 0 of n in shared memory", "atomicAdd(&n, 1);", lanes=32,
          args=[ints(1)], details={"offset": 0}),
    Fault("adding to fresh memory", "__global__ void k(float* sums) {\nsums[threadIdx.x] @@ 1; }", "+=", "=",
          Uninitialised, "a load reads byte 0 of fresh in global memory, which nothing has written",
          "sums[threadIdx.x] += 1; }", lanes=32, allocation="fresh", args=[Fresh(128)],
          details={"offset": 0, "space": "global"}),
    Fault("atomics on fresh memory", "__global__ void k(float* sum) {\n@@\natomicAdd(sum + threadIdx.x, 1.f); }", "",
          "sum[threadIdx.x] = 0;", Uninitialised, "an atomic reads byte 0 of fresh in global memory",
          "atomicAdd(sum + threadIdx.x, 1.f); }", lanes=32, allocation="fresh",
          args=[Fresh(128)], details={"offset": 0}),
    Fault("workspace of which only a part is filled", "__global__ void k(float* w, float* o) { int t = threadIdx.x;\n"
          "if (t < @@) w[t] = t;\n__syncthreads();\no[t] = w[63 - t]; }", "60", "64", Uninitialised,
          "byte 252 of fresh", "o[t] = w[63 - t]; }", lanes=4, allocation="fresh", threads=64,
          args=[Fresh(256), floats(64)], details={"offset": 252}),
    # Races in global memory ------------------------------------------------------------------------------------------
    Fault("racing += over blocks", "__global__ void k(float* sum) {\nif (threadIdx.x == 0)\n@@; }", "*sum += 1",
          "atomicAdd(sum, 1)", Race, "this write of byte 0 of argument 0, which thread .0,0,0. of block .* reads .*"
          "blocks run in any order", "*sum += 1; }", None, lanes=None, allocation="argument 0", grid=40,
          args=given((1,)), other="*sum += 1; }"),
    Fault("racing += within a block", "__global__ void k(const int* a, int* bins) {\n@@; }",
          "bins[a[threadIdx.x]] += 1",
          "atomicAdd(&bins[a[threadIdx.x]], 1)", Race, "this write of byte 0 of argument 1, which thread",
          "bins[a[threadIdx.x]] += 1; }", allocation="argument 1", threads=64, lanes=64,
          args=[ints(64), ints(4)], other="bins[a[threadIdx.x]] += 1; }"),
    Fault("the neighbour block's result without a fence", "__global__ void k(float* o) { int b = blockIdx.x;\n"
          "o[b] = b;\nif (b @@) o[b] += o[b - 1]; }", "> 0", "> 1000", Race,
          "this read of byte 0 of argument 0, which thread .0,0,0. of block .0,0,0. writes", "if (b > 0) o[b] += "
          "o[b - 1]; }", (1, 0, 0), lanes=3, allocation="argument 0", grid=4, threads=1, args=given((4,)),
          other="o[b] = b;"),
    Fault("last block reads what no fence made visible", """__global__ void k(float* part, int* tickets, float* o) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = blockIdx.x;
        @@
        last = atomicAdd(tickets, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x)
        o[threadIdx.x] = part[threadIdx.x];
}""", "", "__threadfence();", Race, "this read of byte .* of argument 0, which thread .0,0,0. of block .* writes",
          "o[threadIdx.x] = part[threadIdx.x];", (5, 0, 0), None, None, "argument 0", grid=6,
          args=[floats(6), ints(1), floats(6)], other="part[blockIdx.x] = blockIdx.x;"),
    Fault("blocks that overlap by one", "__global__ void k(float* o) {\nint i = blockIdx.x * @@ + threadIdx.x;\n"
          "o[i] = i + 100 * blockIdx.x; }", "31", "32", Race,
          "threads write different values to byte 124 of argument 0 at once; the other one is thread .* of block",
          "o[i] = i + 100 * blockIdx.x; }", None, None, None, "argument 0", grid=3, args=given((96,)),
          details={"offset": 124}),
    Fault("a stencil in place", "__global__ void k(float* a, float* b) { int i = threadIdx.x;\n"
          "float v = i > 0 ? a[i - 1] : 0;\n@@[i] = v; }", "a", "b", Race,
          "this write of byte 0 of argument 0, which thread .1,0,0. reads", "a[i] = v; }", allocation="argument 0",
          lanes=63, threads=64, args=given((64,), (64,)), other="float v = i > 0 ? a[i - 1] : 0;"),
    Fault("a lock without a fence", """__global__ void k(int* lock, int* sum) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) { }
        sum[0] += 1;
        @@
        atomicExch(lock, 0);
    }
}""", "", "__threadfence();", Race, "of byte 0 of argument 1, which thread .0,0,0. of block .* (reads|writes)",
          "sum[0] += 1;", None, None, None, "argument 1", grid=5, args=[ints(1), ints(1)],
          other="sum[0] += 1;"),
    # Warps -----------------------------------------------------------------------------------------------------------
    Fault("a full mask after half the warp has left", "__global__ void k(int* o) { int t = threadIdx.x;\n"
          "if (t >= @@) return;\no[t] = __shfl_down_sync(0xffffffffu, t, 1); }", "16", "32", WarpMismatch,
          "the mask names lane 16, which has left the kernel", "o[t] = __shfl_down_sync(0xffffffffu, t, 1); }",
          lanes=16, args=[ints(32)]),
    Fault("shuffle past the active lanes", "__global__ void k(int* o) { int t = threadIdx.x;\nif (t < 16)\n"
          "o[t] = __shfl_down_sync(0xffffu, t, 8@@); }", "", ", 16", WarpMismatch,
          "reads the value of lane 16, which takes no part", "o[t] = __shfl_down_sync(0xffffu, t, 8); }",
          thread=(8, 0, 0), lanes=8, args=[ints(32)]),
    Fault("a mask without its own lane", "__global__ void k(int* o) { int t = threadIdx.x;\nif (t < 16)\n"
          "o[t] = __any_sync(@@, t == 3); }", "0xff", "0xffff", WarpMismatch, "a lane is not in its own mask",
          "o[t] = __any_sync(0xff, t == 3); }", thread=(8, 0, 0), lanes=8, args=[ints(32)]),
    Fault("lanes that wait for each other at two shuffles", "__global__ void k(int* o) { int t = threadIdx.x;\n"
          "if (t < 16)\no[t] = __shfl_xor_sync(@@u, t, 1);\nelse\no[t] = __shfl_xor_sync(0xffff0000u, t, 2); }",
          "0xffffffff", "0x0000ffff", WarpMismatch, "the mask names lane 16, which has left the kernel",
          "o[t] = __shfl_xor_sync(0xffffffffu, t, 1);", lanes=16, args=[ints(32)]),
    Fault("a shuffle on one side and a barrier on the other", "__global__ void k(int* o) { int t = threadIdx.x;\n"
          "if (t % 32 < 8)\no[t] = __shfl_xor_sync(@@, t, 1);\n__syncthreads(); }", "0xffffffffu", "0xffu",
          WarpMismatch, "lanes 0-7 wait here for lanes 8-31, which their mask names; lanes "
          "8-31 wait at the barrier in line 4", "o[t] = __shfl_xor_sync(0xffffffffu, t, 1);", lanes=16, threads=64,
          args=[ints(64)]),
    Fault("a barrier in one branch, an endless wait in the other", "__global__ void k(volatile int* o) {\n"
          "if (threadIdx.x == 0) {\nwhile (o[0] == 0) { } }\nelse if (threadIdx.x == 1) o[@@] = 1;\n"
          "__syncthreads(); }", "1", "0", EndlessLoop, "1 threads were running, 63 wait at the barrier in line 5",
          "while (o[0] == 0) { } }", lanes=1, threads=64, args=[ints(2)]),
    Fault("a full mask in a block of two threads", "__global__ void k(int* o) {\n"
          "o[threadIdx.x] = __shfl_down_sync(@@); }", "0xffffffff, threadIdx.x, 1", "0x3, threadIdx.x, 1, 2",
          WarpMismatch, "reads the value of lane 2, which takes no part", "o[threadIdx.x] = __shfl_down_sync("
          "0xffffffff, threadIdx.x, 1); }", thread=(1, 0, 0), threads=2, lanes=1, args=[ints(2)]),
    # Loops and launches ----------------------------------------------------------------------------------------------
    Fault("endless loop", "__global__ void k(int* o, int n) { int i = n;\nwhile (i > 0)\ni = (i @@ + o[0]) / 2;\n"
          "o[1] = i; }", "+ 2", "", EndlessLoop, "endless loop: more than 3000 steps; .*; 32 threads", None,
          lanes=32, args=[ints(2), 5], details={"steps": STEPS}),
    Fault("a lock that is never released", "__global__ void k(int* lock, int* sum) {\nif (threadIdx.x == 0) {\n"
          "while (atomicCAS(lock, 0, 1) != 0) { }\natomicAdd(sum, 1);\n@@ } }", "",
          "__threadfence(); atomicExch(lock, 0);", EndlessLoop, "endless loop: nothing .* any more; 2 threads",
          "while (atomicCAS(lock, 0, 1) != 0) { }", None, (0, 0, 0), 2, grid=3,
          args=[ints(1), ints(1)]),
    Fault("a wait for a flag that no one sets", "__global__ void k(volatile int* flag, int* o) {\n"
          "if (threadIdx.x == 0) @@;\nwhile (flag[0] == 0) { }\no[threadIdx.x] = 1; }", "flag[1] = 1", "flag[0] = 1",
          EndlessLoop, "endless loop", "while (flag[0] == 0) { }", lanes=32, args=[ints(2), ints(32)]),
    Fault("too many threads", "__global__ void k(float* o) { o[0] = 1; }", "", "", LaunchError,
          "a block of 2048 threads; at most 1024", None, None, None, 0, threads=Pair(2048, 1024), args=given((1,))),
    Fault("more threads than the kernel is bound to", "__global__ void __launch_bounds__(64) k(float* o) {\n"
          "o[threadIdx.x] = 1; }", "", "", LaunchError, "a block of 128 threads, but __launch_bounds__ says 64", None,
          None, None, 0, threads=Pair(128, 64), args=given((128,))),
    Fault("an empty grid", "__global__ void k(float* o) { o[0] = 1; }", "", "", LaunchError,
          r"grid must be one to three positive integers, not \(0, 1\)", None, None, None, 0, grid=Pair((0, 1), (1, 1)),
          args=given((1,))),
    Fault("more shared memory than there is", "__global__ void k(float* o) { extern __shared__ float s[];\n"
          "s[threadIdx.x] = 1; o[0] = s[threadIdx.x]; }", "", "", LaunchError, "300000 bytes of shared memory", None,
          None, None, 0, shared=Pair(300_000, 128), args=given((1,))),
    Fault("an argument forgotten", "__global__ void k(float* o@@) { o[0] = 1; }", ", int n", "", LaunchError,
          "1 arguments given, 2 expected", None, None, None, 0, args=given((1,))),
]  # fmt: skip
