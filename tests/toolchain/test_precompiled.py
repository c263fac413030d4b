"""Headers that NVRTC keeps from one compilation to the next change nothing but the time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from climb.toolchain import CompileError, cache, precompiled
from climb.toolchain.compilation import compile_cuda
from climb.toolchain.nvrtc import nvrtc_version

HEAD = "// sums\n#include <cuda/ptx>\n#define N \\\n    32\n"
BODY = "__global__ void sum(int* data) { data[0] += cuda::ptx::get_sreg_laneid() % N; }\n"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """Nothing seen yet and nothing on disk; lists the flags for headers of each compilation."""
    monkeypatch.setattr(cache, "FOLDER", None)
    monkeypatch.setattr(precompiled, "_seen", type(precompiled._seen)())
    made, flags = [], precompiled.flags
    monkeypatch.setattr(precompiled, "flags", lambda *given: made.append(flags(*given)) or made[-1])
    yield made


@pytest.mark.skipif(nvrtc_version() < (12, 8), reason="NVRTC 12.8 was the first to keep headers")
def test_second_source_with_the_same_head_uses_kept_headers_and_gives_the_same_ptx(kept: list[list[str]]) -> None:
    variants = [BODY, BODY.replace("+=", "-="), BODY.replace("+=", "-=") + "// another\n"]
    _, made, used = (compile_cuda(HEAD + body, filename="sum.cu") for body in variants)
    assert [bool(flags) for flags in kept] == [False, True, True] and kept[1] == kept[2]
    assert used.log == made.log == "" and made.ptx == used.ptx
    plain = "// sums, by another author\n" + HEAD.split("\n", 1)[1] + variants[1]  # another head: compiled without
    assert compile_cuda(plain, filename="sum.cu").ptx == used.ptx and not kept[-1]

    with pytest.raises(CompileError, match=re.escape('sum.cu:5: error: identifier "wrong" is undefined')):
        compile_cuda(HEAD + "__global__ void sum(int* data) { data[0] = wrong; }", filename="sum.cu")


@pytest.mark.parametrize(
    "source", ["__global__ void f() {}", "#include <cuda_fp16.h>\n", "int a;\n#include <cuda/barrier>\n"]
)
def test_small_headers_and_those_below_the_head_are_not_kept(kept: list[list[str]], source: str) -> None:
    assert [precompiled.flags(source, []) for _ in range(2)] == [[], []]
