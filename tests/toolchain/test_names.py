"""Kernels are named in messages as their source names them."""

from __future__ import annotations

import pytest

from climb.toolchain import compile_cuda
from climb.toolchain.names import demangled

SOURCE = """
struct Pair { float a, b; };
enum Kind { first, second };
namespace inner { template <typename T> __global__ void scale(T* x, T by) { x[0] *= by; } }
namespace { __global__ void hidden(int* x) { x[0] = 1; } }
template <int n, bool b, typename... T> __global__ void many(T*... x) {}
template <typename T> struct Box { T held; };
template <typename T> __global__ void takes(T x) {}
template <Kind k, unsigned u, long long l> __global__ void constants(const float* x, const float* y) {}
__global__ void plain(const float* a, float* b, int n) { b[n] = a[n]; }
extern "C" __global__ void bare(float* x) { x[0] = 1; }
"""


def test_names_that_the_compiler_mangles_become_the_expressions_they_came_from() -> None:
    expected = {
        "plain": "plain",
        "bare": "bare",
        "inner::scale<float>": "inner::scale<float>",
        "inner::scale<unsigned char>": "inner::scale<unsigned char>",
        "many<-3, true, float, int>": "many<-3, true, float, int>",
        "takes<const float*>": "takes<const float*>",
        "takes<Pair>": "takes<Pair>",
        "takes<Box<float>>": "takes<Box<float>>",
        "constants<second, 4u, -5>": "constants<(Kind)1, 4, -5>",
    }
    compiled = compile_cuda(SOURCE, filename="names.cu", name_expressions=tuple(expected))
    assert {name: demangled(compiled.lowered(name)) for name in expected} == expected
    (hidden,) = (
        (name for name in compiled.kernels if "hidden" in name)
        if any("hidden" in name for name in compiled.kernels)
        else ("_ZN12_GLOBAL__N_16hiddenEPi",)
    )
    assert demangled(hidden) == "hidden"


@pytest.mark.parametrize("name", ["saxpy", "_Z", "_Z3ab", "_Z1fIXadL_Z1gvEEEvv", "_ZN1a1b", "_Z1fILDn0EEvv", "_Z0f"])
def test_a_name_that_is_not_understood_stays_as_it_is(name: str) -> None:
    assert demangled(name) == name
