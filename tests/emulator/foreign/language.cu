#ifndef FAULT
#define FAULT 0
#endif
#include <cuda_fp16.h>
extern "C" __global__ void haxpy(int n, half a, const half2 *x, half2 *y) {
    int start = threadIdx.x + blockDim.x * blockIdx.x, stride = blockDim.x * gridDim.x;
    int n2 = n / 2;
    for (int i = start; i < n2; i += stride)
        y[i] = __hfma2(__halves2half2(a, a), x[i], y[i]);
    if (start == 0 && (n % 2))
        ((half *)y)[n - 1] = __hfma(a, ((const half *)x)[n - 1], ((half *)y)[n - 1]);
}
// An interpreter: a switch in a loop over a stack in local memory.
enum Op { PUSH, ADD, MUL, SUB, DUP, SWAP, JNZ, HALT, OVER, XOR_, SHL_, NEG };
extern "C" __global__ void machine(const int *code, const int *arg, int *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int stack[16], top = 0;
    stack[top++] = t % 11 + 1;
    for (int pc = 0;; ++pc) {
        switch (code[pc]) {
        case PUSH: stack[top++] = arg[pc]; break;
        case ADD: --top; stack[top - 1] += stack[top]; break;
        case MUL: --top; stack[top - 1] *= stack[top]; break;
        case SUB: --top; stack[top - 1] -= stack[top]; break;
        case DUP: stack[top] = stack[top - 1]; ++top; break;
        case SWAP: {
            int x = stack[top - 1];
            stack[top - 1] = stack[top - 2];
            stack[top - 2] = x;
            break;
        }
        case OVER: stack[top] = stack[top - 2]; ++top; break;
        case XOR_: --top; stack[top - 1] ^= stack[top]; break;
        case SHL_: --top; stack[top - 1] <<= stack[top] & 31; break;
        case NEG: stack[top - 1] = -stack[top - 1]; break;
        case JNZ: if (stack[--top]) pc += arg[pc] - 1; break;
        case HALT: out[t] = stack[top - 1]; return;
        }
    }
}
// Several arrays out of one block of dynamic shared memory, of falling alignment.
extern "C" __global__ void carved(const double *d, const float *f,
                                  const unsigned short *h, double *out, int n) {
    extern __shared__ unsigned char raw[];
    double *sd = reinterpret_cast<double *>(raw);
    float *sf = reinterpret_cast<float *>(sd + n);
    unsigned short *sh = reinterpret_cast<unsigned short *>(sf + n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        sd[i] = d[i];
        sf[i] = f[i];
        sh[i] = h[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int j = n - 1 - i, k = (i * 7) % n;
#if FAULT == 1
        k++;
#endif
        out[i] = sd[j] + sf[j] * sh[k];
    }
}
extern "C" __global__ void ptx_inside(const unsigned *x, unsigned *out, int n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned lane, a = x[i], r, s;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("{\n\t.reg .pred p;\n\t.reg .u32 t;\n\tsetp.gt.u32 p, %1, 1000;\n\t"
        "@p shr.u32 t, %1, 3;\n\t@!p mul.lo.u32 t, %1, 5;\n\tmov.u32 %0, t;\n\t}"
        : "=r"(r) : "r"(a));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(s) : "r"(a), "r"(r), "r"(lane));
    asm("bfe.u32 %0, %1, 4, 12;" : "=r"(a) : "r"(a));
    asm volatile("st.global.cg.u32 [%0], %1;"
                 :: "l"(out + i), "r"(r + s * 3 + a) : "memory");
}
// Functions by address.
typedef float (*unary)(float);
__device__ __noinline__ float twice(float x) { return x * 2.f; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ unary table[2] = {twice, square};
extern "C" __global__ void by_pointer(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = table[i & 1](x[i]);
}
// Recursion.
__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void fib(int *out) {
    out[threadIdx.x] = fibonacci(threadIdx.x % 8);
}
// Structures by value and by reference, virtual-free polymorphism.
template <class T, int N> struct Vec {
    T v[N];
    __host__ __device__ T &operator[](int i) { return v[i]; }
    __host__ __device__ T operator[](int i) const { return v[i]; }
};
template <class F, class T, int N>
__global__ void apply(F, Vec<T, N> shift, const T *in, T *out, int n) = delete;
template <class T, int N>
__device__ Vec<T, N> operator+(Vec<T, N> a, const Vec<T, N> &b) {
    for (int i = 0; i < N; ++i) a[i] += b[i];
    return a;
}
template <class T, int N>
__global__ void shift(Vec<T, N> by, const Vec<T, N> *in, Vec<T, N> *out, int n) {
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n;
         i += gridDim.x * blockDim.x)
        out[i] = in[i] + by;
}
