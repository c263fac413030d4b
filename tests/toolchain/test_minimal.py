"""A source compiles without the declarations that it does not need, to the same PTX and with the same messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from climb.toolchain import CompileError, cache, minimal
from climb.toolchain.compilation import compile_cuda
from climb.toolchain.nvrtc import nvrtc_version
from climb.toolchain.program import Program

pytestmark = pytest.mark.skipif(nvrtc_version() < (12, 8), reason="older compilers get every declaration")

KERNEL = 'extern "C" __global__ void f(float* x) { x[threadIdx.x] *= 2; }\n'
STATUS = "__device__ int status(cudaError_t e) { return e == cudaSuccess; }\n"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Nothing on disk; lists for each run of NVRTC whether the declarations were left out."""
    made: list[bool] = []
    run = Program._compile
    monkeypatch.setattr(cache, "FOLDER", None)
    monkeypatch.setattr(
        Program, "_compile", lambda self, given, arch: (made.append("-minimal" in given), run(self, given, arch))[1]
    )
    return made


def test_the_ptx_is_the_same_without_the_declarations(runs: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    small = compile_cuda("#include <cuda_fp16.h>\n" + KERNEL, filename="small.cu")
    monkeypatch.setattr(minimal, "flags", lambda texts: [])
    plain = compile_cuda("#include <cuda_fp16.h>\n" + KERNEL, filename="small.cu", options=("-DN",))
    assert runs == [True, False] and small.ptx == plain.ptx


def test_what_needs_the_declarations_gets_them(runs: list[bool], tmp_path: Path) -> None:
    (tmp_path / "status.cuh").write_text(STATUS)
    compile_cuda('#include "status.cuh"\n' + KERNEL, filename="status.cu", include_dirs=(tmp_path,))
    compile_cuda(KERNEL.replace("f(", "f(cudaTextureObject_t t, "), filename="texture.cu")
    hidden = "#define OF_RUNTIME(name) cu##da##name\n" + KERNEL.replace("f(", "f(OF_RUNTIME(Error_t) status, ")
    compile_cuda(hidden, filename="hidden.cu")
    assert runs == [False, False, True, False]


def test_messages_are_those_of_a_run_with_all_declarations(runs: list[bool]) -> None:
    with pytest.raises(CompileError, match=re.escape('wrong.cu:1: error: identifier "y" is undefined')):
        compile_cuda(KERNEL.replace("*= 2", "*= y"), filename="wrong.cu")
    assert runs == [True, False]


@pytest.mark.parametrize(
    "need", ["cudaError_t e;", "CUtensorMap m;", "tex1D<float>(t, x)", "surface<void, 2> s;", "f<<<1, 1>>>(x)"]
)
def test_names_of_the_omitted_declarations_are_known(need: str) -> None:
    assert minimal.flags([KERNEL]) == ["-minimal"] and minimal.flags([KERNEL, need]) == []


def test_large_sources_keep_the_declarations() -> None:
    comment = f"// {'-' * (minimal.SMALL - len(KERNEL) - 4)}\n"
    assert minimal.flags([KERNEL, comment]) == ["-minimal"] and minimal.flags([KERNEL, f"-{comment}"]) == []
