"""Arguments of a launch: checked against the kernel's parameters, which are read from PTX and source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_cupy.source import EXPRESSIONS, SOURCE
from hypothesis import given, settings
from hypothesis import strategies as st

from climb import fake_cupy as cp
from climb.fake_cupy.packing import pack
from climb.fake_cupy.parameters import read_parameters
from climb.toolchain import compile_cuda


@pytest.fixture(scope="module")
def module() -> cp.RawModule:
    return cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)


class TestArguments:
    """Arguments that a GPU would silently misread are refused here."""

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
    def test_wrong_argument_is_named_with_what_the_kernel_takes(
        self, module: cp.RawModule, args: Callable[[Any], Any], said: str
    ) -> None:
        x = cp.zeros(4, dtype=cp.float32)
        with pytest.raises(TypeError, match=said):
            module.get_function("axpy")((1,), (4,), args(x))

    def test_unsigned_array_is_accepted_for_a_signed_parameter(self, module: cp.RawModule) -> None:
        out = cp.zeros(4, dtype=cp.uint32)
        module.get_function("small")((1,), (4,), (out,))
        assert out.tolist() == [1, 1, 1, 1]

    def test_parameter_of_template_type_is_checked_by_size(self, module: cp.RawModule) -> None:
        x = cp.zeros(128, dtype=cp.float32)
        with pytest.raises(TypeError, match=r"argument 2 \('out'\) is np.int32\(0\), 4 bytes"):
            module.get_function("shifted<float, 128>")((1,), (128,), (x, np.int32(0)))

    @given(
        value=st.integers(-(2**63), 2**64 - 1),
        name=st.sampled_from(["signed char", "unsigned short", "int", "unsigned", "long long", "size_t"]),
    )
    @settings(max_examples=200, deadline=None)
    def test_python_int_is_passed_exactly_or_refused(self, value: int, name: str) -> None:
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

    def test_plain_declarations_are_read(self) -> None:
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

    def test_template_declaration_is_read(self) -> None:
        source = "template <typename T, int N>\n__global__ void f(const T* a, /* how many, */ int n) {}"
        assert self.parameters(source, "f<float, 4>") == [("a", "T*", 8), ("n", "int", 4)]

    def test_kernels_in_comments_are_ignored(self) -> None:
        comments = "// __global__ void f(int a)\n/* __global__ void f(int a, int b) */\n"
        source = comments + 'extern "C" __global__ void f(int real) {}'
        assert self.parameters(source) == [("real", "int", 4)]

    def test_ambiguous_kernel_name_leaves_parameters_unnamed(self) -> None:
        source = "namespace a { __global__ void f(int x) {} }\nnamespace b { __global__ void f(float y) {} }"
        assert self.parameters(source, "b::f") == [("", "", 4)]

    def test_repeated_declaration_is_read_once(self) -> None:
        source = 'extern "C" __global__ void f(int x);\nextern "C" __global__ void f(int x) {}'
        assert self.parameters(source) == [("x", "int", 4)]

    def test_involved_declaration_leaves_parameters_unnamed(self) -> None:
        source = 'struct S { int x[3]; };\nextern "C" __global__ void f(S s, void (*g)(int)) {}'
        assert self.parameters(source) == [("", "", 12), ("", "", 8)]

    def test_kernel_without_parameters_has_none(self) -> None:
        assert self.parameters('extern "C" __global__ void f() {}') == []
