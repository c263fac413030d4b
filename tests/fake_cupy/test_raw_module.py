"""RawModule and RawKernel: compiling, launching, attributes, and the errors of a wrong kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_cupy.source import EXPRESSIONS, SOURCE, ramp

from climb import fake_cupy as cp
from climb.emulator import EmulatorError
from climb.fake_cupy.memory import device_memory
from climb.toolchain import CompileError, KernelNotFound, compile_cuda, resources


@pytest.fixture(scope="module")
def module() -> cp.RawModule:
    return cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)


class TestLaunching:
    def test_kernel_runs_on_device_arrays(self, module: cp.RawModule) -> None:
        x, y = cp.asarray(ramp(1000)), cp.ones(1000, dtype=cp.float32)
        module.get_function("axpy")((4,), (256,), (x, y, np.float32(2), 1000))
        np.testing.assert_array_equal(cp.asnumpy(y), 1 + 2 * ramp(1000))

    def test_template_instance_runs(self, module: cp.RawModule) -> None:
        data = ramp(96, np.int32)
        out = cp.empty(96, dtype=cp.int32)
        module.get_function("shifted<int, 32>")((3,), (32,), (cp.asarray(data), out))
        np.testing.assert_array_equal(out.get(), np.roll(data.reshape(3, 32), -1, axis=1).ravel())

    def test_raw_kernel_runs_with_its_options(self) -> None:
        kernel = cp.RawKernel('extern "C" __global__ void f(int* a) { a[threadIdx.x] = N; }', "f", ("-DN=7",))
        a = cp.zeros(5, dtype=cp.int32)
        kernel((1,), (5,), (a,))
        assert a.tolist() == [7] * 5

    def test_include_directory_among_the_options_is_searched(self, tmp_path: Any) -> None:
        (tmp_path / "seven.cuh").write_text("#define SEVEN 7\n")
        code = '#include "seven.cuh"\nextern "C" __global__ void f(int* a) { *a = SEVEN; }'
        a = cp.zeros(1, dtype=cp.int32)
        cp.RawModule(code=code, options=(f"-I{tmp_path}",)).get_function("f")((1,), (1,), (a,))
        assert int(a[0]) == 7

    def test_dynamic_shared_memory_has_the_size_of_the_launch(self, module: cp.RawModule) -> None:
        out = cp.empty(64, dtype=cp.float32)
        module.get_function("dynamic")((1,), (64,), (out,), shared_mem=256)
        np.testing.assert_array_equal(out.get(), ramp(64)[::-1])

    def test_vector_parameter_takes_an_array_of_its_elements(self, module: cp.RawModule) -> None:
        x, out = cp.asarray(ramp(16)), cp.zeros(16, dtype=cp.float32)
        module.get_function("vectors")((1,), (4,), (x, out))
        np.testing.assert_array_equal(out.get(), x.get())

    def test_scalar_of_every_type_is_passed(self, module: cp.RawModule) -> None:
        out = cp.zeros(8)
        args = (True, np.uint8(200), np.int16(-3), 4_000_000_000, -(2**40), np.float32(0.5), 0.25, 2**40)
        module.get_function("scalars")((1,), (1,), (out, *args))
        assert out.tolist() == [1, 200, -3, 4_000_000_000, -(2**40), 0.5, 0.25, 2**40]

    def test_constant_memory_is_written_through_its_pointer(self, module: cp.RawModule) -> None:
        weights = cp.ndarray((4,), cp.float32, module.get_global("filter"))
        weights[...] = cp.asarray(np.array([1, 10, 100, 1000], np.float32))
        x, y = cp.asarray(ramp(20)), cp.zeros(20, dtype=cp.float32)
        module.get_function("convolve")((1,), (32,), (x, y, 20))
        expected = sum(w * ramp(20)[k : 17 + k] for k, w in enumerate((1, 10, 100, 1000)))
        np.testing.assert_array_equal(y.get()[:17], expected)

    def test_equal_sources_share_their_variables(self, module: cp.RawModule) -> None:
        again = cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
        cp.ndarray((1,), cp.int32, module.get_global("counter"))[...] = 42
        assert cp.ndarray((1,), cp.int32, again.get_global("counter")).tolist() == [42]

    def test_view_is_passed_at_its_offset(self, module: cp.RawModule) -> None:
        x, y = cp.asarray(ramp(100)), cp.zeros(100, dtype=cp.float32)
        module.get_function("axpy")((1,), (64,), (x[30:], y[10:], np.float32(1), 64))
        expected = np.zeros(100, np.float32)
        expected[10:74] = ramp(100)[30:94]
        np.testing.assert_array_equal(y.get(), expected)

    def test_subnormals_are_flushed_as_in_cupy(self) -> None:
        kernel = cp.RawKernel('extern "C" __global__ void f(float* a) { a[0] *= 0.5f; }', "f")
        a = cp.asarray(np.array([1.2e-38], np.float32))
        kernel((1,), (1,), (a,))
        assert a.item() == 0.0


class TestWrongKernels:
    def test_out_of_bounds_error_names_the_kernels_parameter(self, module: cp.RawModule) -> None:
        x, y = cp.zeros(100, dtype=cp.float32), cp.zeros(200, dtype=cp.float32)
        with pytest.raises(EmulatorError, match=r"the end of x \(400 bytes\)"):
            module.get_function("axpy")((1,), (128,), (x, y, np.float32(1), 128))

    def test_vector_load_from_an_unaligned_view_is_an_error(self, module: cp.RawModule) -> None:
        x, out = cp.zeros(17, dtype=cp.float32), cp.zeros(16, dtype=cp.float32)
        with pytest.raises(EmulatorError, match=r"(?i)align"):
            module.get_function("vectors")((1,), (4,), (x[1:], out))

    def test_access_to_freed_memory_is_an_error(self, module: cp.RawModule) -> None:
        gone = cp.zeros(64, dtype=cp.float32)
        address = gone.data.ptr
        assert device_memory.find(address) is not None
        del gone
        assert device_memory.find(address) is None
        with pytest.raises(EmulatorError):
            module.get_function("axpy")((1,), (64,), (address, cp.zeros(64, dtype=cp.float32), np.float32(1), 64))

    def test_view_keeps_the_memory_of_its_base(self, module: cp.RawModule) -> None:
        tail = cp.zeros(64, dtype=cp.float32)[32:]
        assert device_memory.find(tail.data.ptr) is not None

    def test_element_that_no_thread_wrote_is_nan(self, module: cp.RawModule) -> None:
        out = cp.empty(70, dtype=cp.float32)
        module.get_function("dynamic")((1,), (64,), (out,), shared_mem=256)
        assert np.isnan(out.get()[64:]).all()
        assert not np.isnan(out.get()[:64]).any()

    def test_traceback_ends_at_the_launch(self, module: cp.RawModule) -> None:
        x = cp.zeros(1, dtype=cp.float32)
        with pytest.raises(EmulatorError) as caught:
            module.get_function("axpy")((1,), (64,), (x, x, np.float32(1), 64))
        assert [entry.name for entry in caught.traceback][1:] == ["__call__"]
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


class TestModules:
    def test_unknown_kernel_is_refused_with_a_list_of_kernels(self, module: cp.RawModule) -> None:
        with pytest.raises(KernelNotFound, match=r"it has 'axpy', .*'shifted<float, 128>'"):
            module.get_function("saxpy")

    def test_unknown_variable_is_refused_with_a_list_of_variables(self, module: cp.RawModule) -> None:
        with pytest.raises(LookupError, match=r"filters.*counter, filter"):
            module.get_global("filters")

    def test_compile_error_names_the_line(self) -> None:
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
        ],
    )
    def test_unsupported_option_of_a_module_is_refused(self, options: dict[str, Any], error: type[Exception]) -> None:
        with pytest.raises(error):
            cp.RawModule(**options)

    def test_attributes_are_those_of_the_machine_code(self, module: cp.RawModule) -> None:
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

    def test_opt_in_holds_for_one_kernel_object(self, module: cp.RawModule) -> None:
        module.get_function("dynamic").max_dynamic_shared_size_bytes = 60000
        assert module.get_function("dynamic").max_dynamic_shared_size_bytes == 48 * 1024
