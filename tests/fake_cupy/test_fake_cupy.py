"""The stand-in for CuPy: what runs on it runs on CuPy, and what CuPy refuses it refuses."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climb import fake_cupy as cp
from climb.bench import cuda as choice
from climb.emulator import EmulatorError
from climb.fake_cupy import limits
from climb.fake_cupy.errors import CUDADriverError
from climb.fake_cupy.memory import device_memory
from climb.fake_cupy.packing import pack
from climb.fake_cupy.parameters import read_parameters
from climb.toolchain import CompileError, KernelNotFound, compile_cuda, resources

SOURCE = r"""
__constant__ float filter[4];
__device__ int counter;

extern "C" __global__ void axpy(const float* __restrict__ x, float* __restrict__ y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

// A window of four, weighted by the filter.
extern "C" __global__ void convolve(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 3 < n)
        y[i] = filter[0] * x[i] + filter[1] * x[i + 1] + filter[2] * x[i + 2] + filter[3] * x[i + 3];
}

extern "C" __global__ void vectors(const float4* in, float4* out) { out[threadIdx.x] = in[threadIdx.x]; }

extern "C" __global__ void dynamic(float* out) {
    extern __shared__ float room[];
    room[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) small(int* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void scalars(double* out, bool flag, unsigned char byte, short half, unsigned word,
                                   long long wide, float single, double twice, size_t n) {
    out[0] = flag; out[1] = byte; out[2] = half; out[3] = word; out[4] = (double)wide; out[5] = single; out[6] = twice;
    out[7] = (double)n;
}

template <typename T, int N>
__global__ void shifted(const T* in, T* out) {
    __shared__ T tile[N];
    tile[threadIdx.x] = in[blockIdx.x * N + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * N + threadIdx.x] = tile[(threadIdx.x + 1) % N];
}
"""
EXPRESSIONS = ("shifted<float, 128>", "shifted<int, 32>")


@pytest.fixture(scope="module")
def module() -> cp.RawModule:
    return cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)


def ramp(n: int, dtype: Any = np.float32) -> np.ndarray:
    return np.arange(n, dtype=dtype)


class TestLaunching:
    def test_a_kernel(self, module: cp.RawModule) -> None:
        x, y = cp.asarray(ramp(1000)), cp.ones(1000, dtype=cp.float32)
        module.get_function("axpy")((4,), (256,), (x, y, np.float32(2), 1000))
        np.testing.assert_array_equal(cp.asnumpy(y), 1 + 2 * ramp(1000))

    def test_a_template(self, module: cp.RawModule) -> None:
        data = ramp(96, np.int32)
        out = cp.empty(96, dtype=cp.int32)
        module.get_function("shifted<int, 32>")((3,), (32,), (cp.asarray(data), out))
        np.testing.assert_array_equal(out.get(), np.roll(data.reshape(3, 32), -1, axis=1).ravel())

    def test_a_raw_kernel(self) -> None:
        kernel = cp.RawKernel('extern "C" __global__ void f(int* a) { a[threadIdx.x] = N; }', "f", ("-DN=7",))
        a = cp.zeros(5, dtype=cp.int32)
        kernel((1,), (5,), (a,))
        assert a.tolist() == [7] * 5

    def test_options_and_headers_of_a_folder(self, tmp_path: Any) -> None:
        (tmp_path / "seven.cuh").write_text("#define SEVEN 7\n")
        code = '#include "seven.cuh"\nextern "C" __global__ void f(int* a) { *a = SEVEN; }'
        a = cp.zeros(1, dtype=cp.int32)
        cp.RawModule(code=code, options=(f"-I{tmp_path}",)).get_function("f")((1,), (1,), (a,))
        assert int(a[0]) == 7

    def test_dynamic_shared_memory(self, module: cp.RawModule) -> None:
        out = cp.empty(64, dtype=cp.float32)
        module.get_function("dynamic")((1,), (64,), (out,), shared_mem=256)
        np.testing.assert_array_equal(out.get(), ramp(64)[::-1])

    def test_vector_parameters_take_arrays_of_their_elements(self, module: cp.RawModule) -> None:
        x, out = cp.asarray(ramp(16)), cp.zeros(16, dtype=cp.float32)
        module.get_function("vectors")((1,), (4,), (x, out))
        np.testing.assert_array_equal(out.get(), x.get())

    def test_every_scalar(self, module: cp.RawModule) -> None:
        out = cp.zeros(8)
        args = (True, np.uint8(200), np.int16(-3), 4_000_000_000, -(2**40), np.float32(0.5), 0.25, 2**40)
        module.get_function("scalars")((1,), (1,), (out, *args))
        assert out.tolist() == [1, 200, -3, 4_000_000_000, -(2**40), 0.5, 0.25, 2**40]

    def test_constant_memory_by_its_pointer(self, module: cp.RawModule) -> None:
        weights = cp.ndarray((4,), cp.float32, module.get_global("filter"))
        weights[...] = cp.asarray(np.array([1, 10, 100, 1000], np.float32))
        x, y = cp.asarray(ramp(20)), cp.zeros(20, dtype=cp.float32)
        module.get_function("convolve")((1,), (32,), (x, y, 20))
        expected = sum(w * ramp(20)[k : 17 + k] for k, w in enumerate((1, 10, 100, 1000)))
        np.testing.assert_array_equal(y.get()[:17], expected)

    def test_the_same_source_shares_its_variables(self, module: cp.RawModule) -> None:
        again = cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
        cp.ndarray((1,), cp.int32, module.get_global("counter"))[...] = 42
        assert cp.ndarray((1,), cp.int32, again.get_global("counter")).tolist() == [42]

    def test_an_array_may_start_inside_another(self, module: cp.RawModule) -> None:
        x, y = cp.asarray(ramp(100)), cp.zeros(100, dtype=cp.float32)
        module.get_function("axpy")((1,), (64,), (x[30:], y[10:], np.float32(1), 64))
        expected = np.zeros(100, np.float32)
        expected[10:74] = ramp(100)[30:94]
        np.testing.assert_array_equal(y.get(), expected)

    def test_flushes_subnormals_as_cupy_does(self) -> None:
        kernel = cp.RawKernel('extern "C" __global__ void f(float* a) { a[0] *= 0.5f; }', "f")
        a = cp.asarray(np.array([1.2e-38], np.float32))
        kernel((1,), (1,), (a,))
        assert a.item() == 0.0


class TestWrongKernels:
    def test_out_of_bounds_names_the_array_as_the_kernel_does(self, module: cp.RawModule) -> None:
        x, y = cp.zeros(100, dtype=cp.float32), cp.zeros(200, dtype=cp.float32)
        with pytest.raises(EmulatorError, match=r"the end of x \(400 bytes\)"):
            module.get_function("axpy")((1,), (128,), (x, y, np.float32(1), 128))

    def test_an_unaligned_view_is_unaligned(self, module: cp.RawModule) -> None:
        x, out = cp.zeros(17, dtype=cp.float32), cp.zeros(16, dtype=cp.float32)
        with pytest.raises(EmulatorError, match=r"(?i)align"):
            module.get_function("vectors")((1,), (4,), (x[1:], out))

    def test_memory_that_is_gone(self, module: cp.RawModule) -> None:
        gone = cp.zeros(64, dtype=cp.float32)
        address = gone.data.ptr
        assert device_memory.find(address) is not None
        del gone
        assert device_memory.find(address) is None
        with pytest.raises(EmulatorError):
            module.get_function("axpy")((1,), (64,), (address, cp.zeros(64, dtype=cp.float32), np.float32(1), 64))

    def test_a_view_keeps_its_memory(self, module: cp.RawModule) -> None:
        tail = cp.zeros(64, dtype=cp.float32)[32:]
        assert device_memory.find(tail.data.ptr) is not None

    def test_an_element_that_no_thread_wrote_shows(self, module: cp.RawModule) -> None:
        out = cp.empty(70, dtype=cp.float32)
        module.get_function("dynamic")((1,), (64,), (out,), shared_mem=256)
        assert np.isnan(out.get()[64:]).all()
        assert not np.isnan(out.get()[:64]).any()

    def test_the_traceback_ends_at_the_launch(self, module: cp.RawModule) -> None:
        x = cp.zeros(1, dtype=cp.float32)
        with pytest.raises(EmulatorError) as caught:
            module.get_function("axpy")((1,), (64,), (x, x, np.float32(1), 64))
        assert [entry.name for entry in caught.traceback][1:] == ["__call__"]
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


class TestArguments:
    """Silent errors on a GPU, exceptions here."""

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            (lambda x: (x, x, np.float32(1)), r"takes 4 arguments, got 3: float\* x, float\* y, float a, int n"),
            (lambda x: (x, x, np.float32(1), 4, 5), "takes 4 arguments, got 5"),
            (lambda x: x, "must be a tuple, not ndarray; write a single argument as"),
            (
                lambda x: (x.get(), x, np.float32(1), 4),
                r"argument 1 \('x'\) is a NumPy array, in host memory; cp.asarray",
            ),
            (
                lambda x: (x, x.astype("f8"), np.float32(1), 4),
                r"argument 2 \('y'\) is a device array of float64.*float32",
            ),
            (lambda x: (x, x.astype("i4"), np.float32(1), 4), r"argument 2 \('y'\) is a device array of int32"),
            (lambda x: (x, x, 1.0, 4), r"argument 3 \('a'\) is the Python float 1.0.*takes float.*np.float32"),
            (lambda x: (x, x, 1, 4), r"argument 3 \('a'\) is the Python int 1.*np.float32"),
            (lambda x: (x, x, np.float64(1), 4), r"argument 3 \('a'\) is np.float64\(1.0\), 8 bytes.*np.float32"),
            (
                lambda x: (x, x, np.int32(1), 4),
                r"argument 3 \('a'\) is np.int32\(1\), 4 bytes, but the kernel takes float",
            ),
            (lambda x: (x, x, np.float32(1), np.int64(4)), r"argument 4 \('n'\) is np.int64\(4\), 8 bytes.*np.int32"),
            (lambda x: (x, x, np.float32(1), np.float32(4)), r"argument 4 \('n'\) is np.float32"),
            (lambda x: (x, x, np.float32(1), 4.0), r"argument 4 \('n'\) is the Python float 4.0.*np.int32"),
            (
                lambda x: (x, x, np.float32(1), 2**31),
                r"argument 4 \('n'\) is the Python int 2147483648, which does not fit",
            ),
            (lambda x: (x, x, np.float32(1), x), r"argument 4 \('n'\) is a device array of float32.*not a pointer"),
            (lambda x: (x, x, np.float32(1), None), r"argument 4 \('n'\) is a NoneType"),
            (lambda x: (np.float32(1), x, np.float32(1), 4), r"argument 1 \('x'\) is np.float32"),
            (lambda x: ("x", x, np.float32(1), 4), r"argument 1 \('x'\) is a str"),
        ],
    )
    def test_says_which_and_what(self, module: cp.RawModule, args: Callable[[Any], Any], said: str) -> None:
        x = cp.zeros(4, dtype=cp.float32)
        with pytest.raises(TypeError, match=said):
            module.get_function("axpy")((1,), (4,), args(x))

    def test_unsigned_and_signed_arrays_are_alike(self, module: cp.RawModule) -> None:
        out = cp.zeros(4, dtype=cp.uint32)
        module.get_function("small")((1,), (4,), (out,))
        assert out.tolist() == [1, 1, 1, 1]

    def test_a_template_parameter_is_checked_by_size(self, module: cp.RawModule) -> None:
        x = cp.zeros(128, dtype=cp.float32)
        with pytest.raises(TypeError, match=r"argument 2 \('out'\) is np.int32\(0\), 4 bytes"):
            module.get_function("shifted<float, 128>")((1,), (128,), (x, np.int32(0)))

    @given(
        value=st.integers(-(2**63), 2**64 - 1),
        name=st.sampled_from(["signed char", "unsigned short", "int", "unsigned", "long long", "size_t"]),
    )
    @settings(max_examples=200, deadline=None)
    def test_a_python_int_is_passed_whole_or_not_at_all(self, value: int, name: str) -> None:
        kinds = {
            "signed char": "i1",
            "unsigned short": "u2",
            "int": "i4",
            "unsigned": "u4",
            "long long": "i8",
            "size_t": "u8",
        }
        dtype = np.dtype(kinds[name])
        ptx = f".visible .entry f(\n\t.param .u{dtype.itemsize * 8} f_param_0\n)\n{{\n}}"
        parameters = read_parameters(ptx, "f", f"__global__ void f({name} v) {{}}", "f")
        info = np.iinfo(dtype)
        if info.min <= value <= info.max:
            assert np.frombuffer(pack(parameters, (value,))[0], dtype)[0] == value
        else:
            with pytest.raises(TypeError, match="does not fit"):
                pack(parameters, (value,))


class TestParameterNames:
    def parameters(self, source: str, expression: str = "f", **options: Any) -> list[tuple[str, str, int]]:
        names = () if 'extern "C"' in source else (expression,)
        compiled = compile_cuda(source, filename="f.cu", name_expressions=names, **options)
        found = read_parameters(compiled.ptx, compiled.lowered(expression), source, expression)
        return [(p.name, p.declared, p.nbytes) for p in found]

    def test_plain(self) -> None:
        source = (
            'extern "C" __global__ void __launch_bounds__(256, 2)\n'
            "f(const float *__restrict__ a, unsigned int n, float b[], float2 v) {}"
        )
        assert self.parameters(source) == [
            ("a", "float*", 8),
            ("n", "unsigned int", 4),
            ("b", "float*", 8),
            ("v", "float2", 8),
        ]

    def test_template(self) -> None:
        source = "template <typename T, int N>\n__global__ void f(const T* a, /* how many, */ int n) {}"
        assert self.parameters(source, "f<float, 4>") == [("a", "T*", 8), ("n", "int", 4)]

    def test_comments_that_look_like_kernels(self) -> None:
        comments = "// __global__ void f(int a)\n/* __global__ void f(int a, int b) */\n"
        source = comments + 'extern "C" __global__ void f(int real) {}'
        assert self.parameters(source) == [("real", "int", 4)]

    def test_two_kernels_of_one_name_are_not_guessed(self) -> None:
        source = "namespace a { __global__ void f(int x) {} }\nnamespace b { __global__ void f(float y) {} }"
        assert self.parameters(source, "b::f") == [("", "", 4)]

    def test_a_declaration_and_its_definition_are_one(self) -> None:
        source = 'extern "C" __global__ void f(int x);\nextern "C" __global__ void f(int x) {}'
        assert self.parameters(source) == [("x", "int", 4)]

    def test_what_is_not_plain_is_left_unnamed(self) -> None:
        source = 'struct S { int x[3]; };\nextern "C" __global__ void f(S s, void (*g)(int)) {}'
        assert self.parameters(source) == [("", "", 12), ("", "", 8)]

    def test_no_parameters(self) -> None:
        assert self.parameters('extern "C" __global__ void f() {}') == []


class TestLimits:
    @pytest.mark.parametrize(
        ("grid", "block", "said"),
        [
            ((1,), (1025,), "x may be at most 1024"),
            ((1,), (32, 33), "1056 threads; a block has at most 1024"),
            ((1,), (1, 1, 65), "z may be at most 64"),
            ((1,), (0,), "block is .0,.; every extent must be at least 1"),
            ((0,), (1,), "grid is .0,.; every extent"),
            ((1, -1), (1,), "every extent"),
            ((1, 65536), (1,), "y may be at most 65535"),
            ((1, 1, 65536), (1,), "z may be at most 65535"),
            ((2**31,), (1,), "x may be at most 2147483647"),
        ],
    )
    def test_grid_and_block(self, module: cp.RawModule, grid: Any, block: Any, said: str) -> None:
        with pytest.raises(CUDADriverError, match=said) as caught:
            module.get_function("small")(grid, block, (cp.zeros(1024, dtype=cp.int32),))
        assert str(caught.value).startswith("CUDA_ERROR_INVALID_VALUE")

    @pytest.mark.parametrize(
        ("grid", "block"), [(1, (1,)), ((1,), 1), ([1], (1,)), ((), (1,)), ((1.0,), (1,)), ((1, 1, 1, 1), (1,))]
    )
    def test_not_a_tuple_of_numbers(self, module: cp.RawModule, grid: Any, block: Any) -> None:
        with pytest.raises(TypeError, match=r"tuple|whole numbers"):
            module.get_function("small")(grid, block, (cp.zeros(1, dtype=cp.int32),))

    def test_launch_bounds(self, module: cp.RawModule) -> None:
        out = cp.zeros(65, dtype=cp.int32)
        module.get_function("small")((1,), (64,), (out,))
        with pytest.raises(CUDADriverError, match="__launch_bounds__ says at most 64"):
            module.get_function("small")((1,), (65,), (out,))

    def test_dynamic_shared_memory_needs_leave(self, module: cp.RawModule) -> None:
        kernel, out = module.get_function("dynamic"), cp.zeros(32, dtype=cp.float32)
        kernel((1,), (32,), (out,), shared_mem=48 * 1024)
        with pytest.raises(CUDADriverError, match="max_dynamic_shared_size_bytes = 49153 asks for more"):
            kernel((1,), (32,), (out,), shared_mem=48 * 1024 + 1)
        kernel.max_dynamic_shared_size_bytes = 227 * 1024
        kernel((1,), (32,), (out,), shared_mem=227 * 1024)
        with pytest.raises(CUDADriverError, match="even when asked for"):
            kernel((1,), (32,), (out,), shared_mem=227 * 1024 + 1)
        with pytest.raises(CUDADriverError, match="a block has 232448 bytes"):
            kernel.max_dynamic_shared_size_bytes = 227 * 1024 + 1

    def test_declared_and_dynamic_shared_memory_add_up(self, module: cp.RawModule) -> None:
        kernel, x = module.get_function("shifted<float, 128>"), cp.zeros(128, dtype=cp.float32)
        assert kernel.max_dynamic_shared_size_bytes == 48 * 1024 - 512
        with pytest.raises(CUDADriverError, match="besides the 512 that it declares"):
            kernel((1,), (128,), (x, x.copy()), shared_mem=48 * 1024 - 511)

    def test_too_much_declared_shared_memory(self) -> None:
        code = r"""extern "C" __global__ void f(int* a) {
            __shared__ int s[20000];
            s[threadIdx.x] = *a;
            __syncthreads();
            *a = s[3];
        }"""
        with pytest.raises(CompileError, match="80000 bytes of shared memory"):
            cp.RawKernel(code, "f")((1,), (32,), (cp.zeros(1, dtype=cp.int32),))

    def test_registers_do_not_suffice(self) -> None:
        code = r"""extern "C" __global__ void hungry(float* a, int n) {
            float x[80];
            for (int i = 0; i < 80; i++) x[i] = a[i * n + threadIdx.x];
            __syncthreads();
            for (int i = 0; i < 80; i++) a[i * n + threadIdx.x] = x[i] * x[(i * 7) % 80];
        }"""
        kernel, a = cp.RawKernel(code, "hungry"), cp.zeros(80 * 1024, dtype=cp.float32)
        assert kernel.num_regs > 64
        most = kernel.max_threads_per_block
        kernel((1,), (most,), (a, 1024))
        with pytest.raises(
            CUDADriverError, match=f"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.*{most + 32} threads of {kernel.num_regs}"
        ):
            kernel((1,), (most + 32,), (a, 1024))

    @pytest.mark.parametrize(("registers", "threads"), [(64, 1024), (65, 896), (128, 512), (168, 384), (255, 256)])
    def test_how_many_threads_registers_allow(self, registers: int, threads: int) -> None:
        # 65536 registers, to each warp 32 times the count rounded up to 256: 65 take 2304, so 28 warps.
        limits.check_registers(registers, (threads, 1, 1))
        with pytest.raises(CUDADriverError):
            limits.check_registers(registers, (threads + 32, 1, 1))


class TestModules:
    def test_a_kernel_that_is_not_there(self, module: cp.RawModule) -> None:
        with pytest.raises(KernelNotFound, match=r"it has 'axpy', .*'shifted<float, 128>'"):
            module.get_function("saxpy")

    def test_a_variable_that_is_not_there(self, module: cp.RawModule) -> None:
        with pytest.raises(LookupError, match=r"filters.*counter, filter"):
            module.get_global("filters")

    def test_a_source_that_does_not_compile(self) -> None:
        with pytest.raises(CompileError, match=r"kernel.cu:1: error"):
            cp.RawModule(code="__global__ void f() { x; }").get_function("f")

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"code": "", "path": "a.cubin"}, TypeError),
            ({}, TypeError),
            ({"path": "a.cubin"}, NotImplementedError),
            ({"code": "", "options": ["-DX"]}, TypeError),
            ({"code": "", "options": "-DX"}, TypeError),
            ({"code": "", "name_expressions": "f<3>"}, TypeError),
            ({"code": "", "backend": "nvcc"}, NotImplementedError),
            ({"code": "", "jitify": True}, NotImplementedError),
            ({"code": "", "enable_cooperative_groups": True}, NotImplementedError),
        ],
    )
    def test_what_a_module_does_not_take(self, options: dict[str, Any], error: type[Exception]) -> None:
        with pytest.raises(error):
            cp.RawModule(**options)

    def test_attributes(self, module: cp.RawModule) -> None:
        kernel = module.get_function("shifted<float, 128>")
        compiled = compile_cuda(SOURCE, filename="kernel.cu", name_expressions=EXPRESSIONS)
        expected = resources(compiled, "shifted<float, 128>")
        assert kernel.attributes == {
            "max_threads_per_block": 1024,
            "shared_size_bytes": 512,
            "local_size_bytes": 0,
            "num_regs": expected.registers,
            "max_dynamic_shared_size_bytes": 48 * 1024 - 512,
        }
        assert module.get_function("small").max_threads_per_block == 64

    def test_settings_belong_to_one_kernel_object(self, module: cp.RawModule) -> None:
        module.get_function("dynamic").max_dynamic_shared_size_bytes = 60000
        assert module.get_function("dynamic").max_dynamic_shared_size_bytes == 48 * 1024


class TestMemory:
    def test_addresses_of_views(self) -> None:
        a = cp.asarray(ramp(12).reshape(3, 4))
        start = a.data.ptr
        assert start % 512 == 0
        assert a[1:, 2:].data.ptr == start + 24
        assert a[::-1].data.ptr == start + 32
        assert a.T.data.ptr == a.reshape(12).data.ptr == a.ravel().data.ptr == a.view(cp.int32).data.ptr == start
        assert a.T.ravel().data.ptr != start
        assert a.copy().data.ptr != start
        assert a[2, 3].data.ptr == start + 44

    def test_a_view_writes_through(self) -> None:
        a = cp.zeros((3, 4), dtype=cp.float32)
        a[1:, 2:] = 5
        a.T[0] += 1
        np.testing.assert_array_equal(a.get(), [[1, 0, 0, 0], [1, 0, 5, 5], [1, 0, 5, 5]])

    def test_an_empty_array_has_no_address(self) -> None:
        assert cp.zeros((0, 3)).data.ptr == 0
        assert cp.zeros((0, 3)).shape == (0, 3)

    def test_layout_is_kept_as_cupy_keeps_it(self) -> None:
        columns = np.ones((3, 4)).T
        assert cp.asarray(columns).flags.f_contiguous
        assert cp.ascontiguousarray(cp.asarray(columns)).flags.c_contiguous
        assert cp.asarray(np.ones((6, 4))[::2]).flags.c_contiguous

    def test_asarray_copies_from_the_host_and_not_on_the_device(self) -> None:
        host = ramp(4)
        a = cp.asarray(host)
        host[0] = 9
        assert a.tolist() == [0, 1, 2, 3]
        assert cp.asarray(a) is a
        assert cp.array(a) is not a
        assert cp.asarray(a, dtype=cp.float64) is not a
        back = a.get()
        back[0] = 9
        assert a.tolist() == [0, 1, 2, 3]

    def test_set(self) -> None:
        a = cp.zeros(4, dtype=cp.float32)
        a.set(ramp(4))
        assert a.tolist() == [0, 1, 2, 3]
        with pytest.raises(TypeError):
            a.set(ramp(4, np.float64))
        with pytest.raises(ValueError, match="shape"):
            a.set(ramp(5))
        with pytest.raises(TypeError):
            a.set([0, 1, 2, 3])

    def test_get_into(self) -> None:
        out = np.zeros(4, np.float32)
        assert cp.asarray(ramp(4)).get(out=out) is out
        assert out.tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="expected"):
            cp.asarray(ramp(4)).get(out=np.zeros(5, np.float32))

    @pytest.mark.parametrize("dtype", ["U1", "O", "M8[s]", "V4"])
    def test_dtypes_that_no_device_has(self, dtype: str) -> None:
        with pytest.raises(ValueError, match="Unsupported dtype"):
            cp.zeros(3, dtype=dtype)


# Each takes the namespace and gives a NumPy array, a number or a str; on a GPU, CuPy must give the same.
SNIPPETS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda cp: (cp.arange(6, dtype=cp.float32) * 2 - 1).get(),
    "power": lambda cp: (cp.arange(6) ** 2).get(),
    "dtype of a Python float": lambda cp: str((cp.arange(6, dtype=cp.float32) * 2.5).dtype),
    "dtype of a NumPy scalar": lambda cp: str((cp.arange(6, dtype=cp.float32) * np.float64(2.5)).dtype),
    "dtype of arange": lambda cp: f"{cp.arange(3).dtype} {cp.arange(3.0).dtype} {cp.ones(3).dtype}",
    "reflected": lambda cp: (1 / cp.full(3, 4.0)).get(),
    "NumPy scalar first": lambda cp: (np.float32(2) * cp.ones(3, dtype=cp.float32)).get(),
    "in place": lambda cp: _in_place(cp).get(),
    "comparison": lambda cp: (cp.arange(6) > 2).get(),
    "mask": lambda cp: _masked(cp).get(),
    "index array": lambda cp: cp.arange(10)[cp.asarray([3, 1, 3])].get(),
    "matmul": lambda cp: (cp.arange(6.0).reshape(2, 3) @ cp.ones((3, 2))).get(),
    "sum": lambda cp: cp.arange(10).sum().item(),
    "sum of an axis": lambda cp: cp.arange(6).reshape(2, 3).sum(axis=1).get(),
    "dtype of a sum": lambda cp: f"{cp.ones(3, dtype=cp.int32).sum().dtype} {cp.ones(3, dtype=cp.float16).sum().dtype}",
    "a sum is an array": lambda cp: repr(cp.arange(4, dtype=cp.float32).sum()),
    "an element is an array": lambda cp: repr(cp.arange(4, dtype=cp.float32)[2]),
    "a number in text": lambda cp: f"{cp.arange(4, dtype=cp.float32)[2]:.3f} {cp.arange(4)[3]}",
    "an array in text": lambda cp: str(cp.arange(4, dtype=cp.float32)),
    "conversions": lambda cp: (int(cp.arange(4)[3]), float(cp.ones(1)[0]), bool(cp.ones(1)[0])),
    "iteration": lambda cp: [int(v) for v in cp.arange(4)],
    "length": lambda cp: len(cp.zeros((3, 4))),
    "tolist": lambda cp: cp.arange(4).reshape(2, 2).tolist(),
    "NumPy's functions": lambda cp: np.sum(cp.arange(6).reshape(2, 3), axis=0).get(),
    "NumPy's ufuncs": lambda cp: np.sqrt(cp.arange(4, dtype=cp.float32) ** 2).get(),
    "type of NumPy's ufunc": lambda cp: isinstance(np.sqrt(cp.ones(3)), cp.ndarray),
    "maximum": lambda cp: cp.maximum(cp.arange(4), 2).get(),
    "where": lambda cp: cp.where(cp.arange(4) > 1, cp.arange(4), 0).get(),
    "allclose": lambda cp: bool(cp.allclose(cp.ones(3), cp.ones(3) + 1e-9)),
    "array_equal": lambda cp: bool(cp.array_equal(cp.ones(3), cp.zeros(3))),
    "isnan": lambda cp: cp.isnan(cp.full(3, cp.nan)).get(),
    "bincount": lambda cp: cp.bincount(cp.asarray([1, 1, 3]), minlength=5).get(),
    "concatenate": lambda cp: cp.concatenate((cp.ones(2), cp.zeros(2))).get(),
    "stack": lambda cp: cp.stack([cp.ones(2), cp.zeros(2)], axis=1).get(),
    "flip": lambda cp: cp.flip(cp.arange(4)).get(),
    "cumsum": lambda cp: cp.cumsum(cp.arange(4)).get(),
    "clip": lambda cp: cp.clip(cp.arange(6), 1, 3).get(),
    "linspace": lambda cp: cp.linspace(0, 1, 5).get(),
    "like": lambda cp: (
        cp.zeros_like(cp.ones((2, 3), dtype=cp.int8)) + cp.full_like(cp.ones((2, 3), dtype=cp.int8), 3)
    ).get(),
    "astype": lambda cp: cp.asarray([1.9, -1.9]).astype(cp.int32).get(),
    "strides": lambda cp: cp.zeros((3, 4), dtype=cp.float32)[:, ::2].T.strides,
    "flags": lambda cp: (cp.zeros((3, 4)).T.flags.f_contiguous, cp.zeros((3, 4)).T.flags.c_contiguous),
    "layout of a transposed host array": lambda cp: cp.asarray(np.ones((3, 4)).T).strides,
    "layout of a strided host array": lambda cp: cp.asarray(np.ones((6, 4))[::2]).strides,
    "layout of a copy": lambda cp: (cp.zeros((3, 4)).T.copy().strides, cp.zeros((3, 4)).T.astype(cp.float32).strides),
    "layout of a sum": lambda cp: (cp.zeros((3, 4)).T + 1).strides,
    "address of a view": lambda cp: _offset(cp, lambda a: a[1:, 2:]),
    "address of a reversed view": lambda cp: _offset(cp, lambda a: a[::-1]),
    "address of a flat transpose": lambda cp: _offset(cp, lambda a: a.T.ravel()) != 0,
    "address of an empty array": lambda cp: cp.zeros((0, 3)).data.ptr,
    "alignment": lambda cp: cp.zeros(3, dtype=cp.uint8).data.ptr % 512,
    "division by zero": lambda cp: (cp.ones(2) / cp.zeros(2)).get(),
    "overflow": lambda cp: (cp.full(2, 200, dtype=cp.uint8) + cp.full(2, 100, dtype=cp.uint8)).get(),
    "broadcast assignment": lambda cp: _broadcast(cp).get(),
    "squeeze": lambda cp: cp.zeros((1, 3, 1)).squeeze().shape,
    "device": lambda cp: (
        cp.cuda.Device().synchronize(),
        cp.cuda.get_current_stream().synchronize(),
        int(cp.cuda.Device().id),
    ),
    "kernel": lambda cp: _kernel(cp).get(),
    "shared memory of a kernel": lambda cp: (
        cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS).get_function(EXPRESSIONS[0]).shared_size_bytes
    ),
    "dynamic shared memory of a kernel": lambda cp: (
        cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
        .get_function(EXPRESSIONS[0])
        .max_dynamic_shared_size_bytes
    ),
    "threads of a kernel": lambda cp: cp.RawKernel(SOURCE, "small").max_threads_per_block,
    "local memory of a kernel": lambda cp: cp.RawKernel(SOURCE, "small").local_size_bytes,
}


def _in_place(cp: Any) -> Any:
    a = cp.arange(6, dtype=cp.float32)
    a += 1
    a[2:] *= cp.full(4, 2.0)
    return a


def _masked(cp: Any) -> Any:
    a = cp.arange(6)
    a[a > 3] = 0
    return a[a < 3]


def _broadcast(cp: Any) -> Any:
    a = cp.zeros((3, 4))
    a[...] = cp.arange(4.0)
    a[1] = 7
    return a


def _offset(cp: Any, view: Callable[[Any], Any]) -> int:
    a = cp.arange(12.0).reshape(3, 4)
    return view(a).data.ptr - a.data.ptr


def _kernel(cp: Any) -> Any:
    module = cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
    x, y = cp.arange(100, dtype=cp.float32), cp.empty(100, dtype=cp.float32)
    y.fill(1)
    module.get_function("axpy")((1,), (128,), (x, y, np.float32(3), 100))
    return y


# Each must be refused, here and by CuPy. (A NumPy array of one element CuPy takes as a kernel's argument, and passes
# its value; TestArguments holds that the stand-in does not.)
REFUSED: dict[str, Callable[[Any], Any]] = {
    "np.asarray": lambda cp: np.asarray(cp.ones(3)),
    "np.array of arrays": lambda cp: np.array([cp.ones(3), cp.ones(3)]),
    "numpy.testing": lambda cp: np.testing.assert_allclose(cp.ones(3), np.ones(3)),
    "NumPy array on the right": lambda cp: cp.ones(3) + np.ones(3),
    "NumPy array on the left": lambda cp: np.ones(3) + cp.ones(3),
    "NumPy output": lambda cp: np.add(cp.ones(3), cp.ones(3), out=np.zeros(3)),
    "adding to a NumPy array": lambda cp: _add_to_host(cp),
    "text": lambda cp: cp.asarray(["a"]),
    "objects": lambda cp: cp.asarray([object()]),
    "hashing": lambda cp: hash(cp.ones(3)),
    "float of many": lambda cp: float(cp.ones(3)),
    "truth of many": lambda cp: bool(cp.ones(3)),
    "wrong shape set": lambda cp: cp.ones(3).set(np.ones(4)),
    "options as a list": lambda cp: cp.RawModule(code=SOURCE, options=["-DX"]),
    "grid as a number": lambda cp: cp.RawKernel(SOURCE, "small")(1, (1,), (cp.zeros(1, dtype=cp.int32),)),
    "grid as a list": lambda cp: cp.RawKernel(SOURCE, "small")([1], (1,), (cp.zeros(1, dtype=cp.int32),)),
    "block too large": lambda cp: cp.RawKernel(SOURCE, "axpy")(
        (1,), (2048,), (cp.zeros(1, "f4"), cp.zeros(1, "f4"), np.float32(1), 0)
    ),
    "block over its launch bound": lambda cp: cp.RawKernel(SOURCE, "small")(
        (1,), (128,), (cp.zeros(128, dtype=cp.int32),)
    ),
    "shared memory without leave": lambda cp: cp.RawKernel(SOURCE, "dynamic")(
        (1,), (32,), (cp.zeros(32, "f4"),), shared_mem=49153
    ),
    "more shared memory than there is": lambda cp: setattr(
        cp.RawKernel(SOURCE, "dynamic"), "max_dynamic_shared_size_bytes", 227 * 1024 + 1
    ),
    "a kernel that is not there": lambda cp: cp.RawModule(code=SOURCE).get_function("saxpy"),
    "a mangled kernel": lambda cp: cp.RawModule(code="__global__ void f(int* a) {}").get_function("f"),
    "a variable that is not there": lambda cp: cp.RawModule(code=SOURCE).get_global("filters"),
    "a source with an error": lambda cp: cp.RawModule(code="__global__ void f() { x; }").get_function("f"),
    "matrices that do not fit": lambda cp: cp.ones((2, 3)) @ cp.ones((2, 3)),
    "shapes that do not fit": lambda cp: cp.ones(3) + cp.ones(4),
    "an index out of range": lambda cp: cp.ones(3)[3],
}


def _add_to_host(cp: Any) -> None:
    host = np.ones(3)
    host += cp.ones(3)


def same(ours: Any, theirs: Any) -> None:
    if isinstance(ours, np.ndarray):
        assert isinstance(theirs, np.ndarray)
        assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


class TestLikeCupy:
    @pytest.mark.parametrize("name", SNIPPETS)
    def test_runs(self, name: str) -> None:
        SNIPPETS[name](cp)

    @pytest.mark.parametrize("name", REFUSED)
    def test_refuses(self, name: str) -> None:
        with pytest.raises((TypeError, ValueError, IndexError, LookupError, CUDADriverError, CompileError)):
            REFUSED[name](cp)

    @pytest.mark.gpu
    @pytest.mark.parametrize("name", SNIPPETS)
    def test_cupy_gives_the_same(self, name: str) -> None:
        same(SNIPPETS[name](cp), SNIPPETS[name](choice.cp))

    @pytest.mark.gpu
    @pytest.mark.parametrize("name", REFUSED)
    def test_cupy_refuses_too(self, name: str) -> None:
        with pytest.raises(Exception):  # noqa: B017 (CuPy has many)
            REFUSED[name](choice.cp)
        choice.cp.cuda.Device().synchronize()

    @pytest.mark.gpu
    def test_every_name_is_cupys(self) -> None:
        for name, value in vars(cp).items():
            own = isinstance(value, types.ModuleType) and value.__name__.startswith("climb.")
            if not own and not name.startswith("_") and name not in ("annotations", "NoReturn"):
                assert hasattr(choice.cp, name), name

    def test_every_name_is_cupys_by_its_files(self) -> None:
        """The same without a GPU: CuPy's __init__ imports every public name by its own name."""
        import importlib.util

        found = importlib.util.find_spec("cupy")
        if found is None or found.origin is None:
            pytest.skip("CuPy is not installed")
        with open(found.origin, encoding="utf-8") as file:
            text = file.read()
        for name in cp._FUNCTIONS:
            assert re.search(rf"\bimport {name}\b|\bas {name}\b|^def {name}\(|^    {name},", text, re.MULTILINE), name


class TestResults:
    """Values that are known without CuPy."""

    def test_numbers(self) -> None:
        assert SNIPPETS["sum"](cp) == 45
        assert SNIPPETS["a sum is an array"](cp) == "array(6., dtype=float32)"
        assert SNIPPETS["a number in text"](cp) == "2.000 3"
        assert SNIPPETS["iteration"](cp) == [0, 1, 2, 3]
        assert SNIPPETS["dtype of a Python float"](cp) == "float32"
        np.testing.assert_array_equal(SNIPPETS["in place"](cp), [1, 2, 6, 8, 10, 12])
        np.testing.assert_array_equal(SNIPPETS["mask"](cp), [0, 1, 2, 0, 0])
        np.testing.assert_array_equal(SNIPPETS["stack"](cp), [[1, 0], [1, 0]])
        np.testing.assert_array_equal(SNIPPETS["division by zero"](cp), [np.inf, np.inf])

    def test_results_live_on_the_device(self) -> None:
        a = cp.ones(4)
        for result in (a + 1, a.sum(), np.sqrt(a), np.sum(a), a > 0, a[0], cp.concatenate((a, a)), a.astype(cp.int8)):
            assert isinstance(result, cp.ndarray)
            assert device_memory.find(result.data.ptr) is not None

    @given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
    @settings(max_examples=100, deadline=None)
    def test_slices_are_views_at_the_right_address(self, shape: list[int], data: st.DataObject) -> None:
        host = ramp(int(np.prod(shape))).reshape(shape)
        a = cp.asarray(host)
        index = tuple(data.draw(st.slices(n)) for n in shape)
        view = a[index]
        np.testing.assert_array_equal(view.get(), host[index])
        assert view.strides == host[index].strides
        if view.size:
            assert view.data.ptr - a.data.ptr == int(host[index].flat[0]) * 4


class TestWhatIsMissing:
    @pytest.mark.parametrize(
        ("use", "said"),
        [
            (lambda: cp.random.rand(3), r"has no cp.random; make random numbers with numpy.random.default_rng"),
            (lambda: cp.convolve, r"has no cp.convolve; it needs a GPU, or use numpy.convolve on cp.asnumpy"),
            (lambda: cp.ElementwiseKernel, "RawKernel"),
            (lambda: cp.get_default_memory_pool, r"has no cp.get_default_memory_pool; it needs a GPU$"),
            (lambda: cp.cuda.Event(), r"no cp.cuda.Event; a time on the emulator would say nothing"),
            (lambda: cp.cuda.runtime.getDeviceProperties(0), r"no cp.cuda.runtime.getDeviceProperties; it needs a GPU"),
            (lambda: cp.cuda.Device().attributes, r"no Device.attributes; it needs a GPU"),
            (lambda: cp.cuda.Stream().record(), r"no Stream.record; it needs a GPU"),
            (lambda: cp.ones(3).sort(), r"no ndarray.sort; it needs a GPU, or use cp.asnumpy\(a\).sort"),
            (lambda: cp.ones(3).not_a_method, "no attribute 'not_a_method'"),
        ],
    )
    def test_says_what_to_do(self, use: Callable[[], Any], said: str) -> None:
        with pytest.raises(AttributeError, match=said):
            use()

    @pytest.mark.parametrize(
        ("use", "said"),
        [
            (lambda: np.convolve(cp.ones(3), cp.ones(3)), "no numpy.convolve for device arrays; use cp.asnumpy"),
            (lambda: np.add.reduce(cp.ones(3)), "only as a plain call"),
            (lambda: cp.sum(cp.ones(3), where=True), "takes no where"),
            (lambda: cp.sum([1, 2, 3]), "cp.asarray makes one"),
            (lambda: cp.cuda.Device(1), "one emulated device"),
            (lambda: cp.ones(3)[[0, 1]], "goes through cp.asarray"),
            (lambda: cp.ones(3).sum(out=cp.ones(1)), "takes no out"),
        ],
    )
    def test_refuses_what_it_cannot_do(self, use: Callable[[], Any], said: str) -> None:
        with pytest.raises((TypeError, IndexError, CUDADriverError), match=said):
            use()

    def test_feature_probes_work(self) -> None:
        assert not hasattr(cp, "__version__")
        assert not hasattr(cp.ones(1), "__cuda_array_interface__")
        assert "RawModule" in dir(cp)
        assert "_FUNCTIONS" not in dir(cp)
