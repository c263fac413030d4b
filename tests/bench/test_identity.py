"""The rule that says what a record belongs to: a changed token makes it stale; a name, a comment or a path does not."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from climb.bench import identity
from climb.bench.identity import canonical, expand_includes, kernels_of, tokens
from climb.bench.registry import ladder_names, load_ladder

SOURCE = """\
// Idea: scale
#pragma once
#include <cuda_fp16.h>
#define TWICE(x) \\
    ((x) + (x))
static_assert(sizeof(int) == 4, "an int has 4 bytes");
template <int kStep>
__global__ void __launch_bounds__(256, 2) scale(float* y, const float* x, float a)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;  // one element
    y[i] += a * TWICE(x[i]) - 1.5e-3f + 0x1p-3f; /* nothing
    else */
}
extern "C" __global__ void other(char* c) { *c = '"'; const char* s = "// no comment"; }
"""


def digest(source: str, kernel: str = "scale<2>", **changed: object) -> str:
    launch = {"kernel": kernel, "grid": [1], "block": [32], "shared_mem": 0, "args": ["y", "x"]} | changed
    return identity.sha256(source, ["-std=c++17"], [launch], {})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// Idea: scale", "// Idea: multiply each element\n// in two lines"),
        ("/* nothing\n    else */", "// gone"),
        ("#pragma once\n", ""),
        ("an int has 4 bytes", "int must be 32 bits wide"),
        (', "an int has 4 bytes"', ""),
        ("    y[i] += a", "  y[ i ]\n      +=  a"),
        ("// one element", "// it's one \\\n element more"),
        (" \\\n    ((x)", " ((x)"),
    ],
)
def test_text_that_the_compiler_ignores_keeps_the_hash(old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    assert digest(SOURCE.replace(old, new)) == digest(SOURCE)


def test_renamed_kernels_keep_the_hash() -> None:
    renamed = re.sub(r"\bscale\b", "multiply", SOURCE).replace("other", "another")
    assert renamed != SOURCE and digest(renamed, "multiply<2>") == digest(SOURCE)


@pytest.mark.parametrize("position", range(len(tokens(SOURCE))))
def test_every_changed_token_changes_the_hash(position: int) -> None:
    """Each token but the kernels' names is replaced in its place, one at a time."""
    found = list(tokens(SOURCE))
    if found[position] in kernels_of(found) or found[position] == "\n":
        return
    changed = found[:]
    changed[position] = "7" if found[position] != "7" else "8"
    assert canonical(" ".join(changed), ["scale<2>"]) != canonical(" ".join(found), ["scale<2>"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TWICE(x) \\\n", "TWICE(x)\n"),
        ('"// no comment"', '"// a comment"'),
        ("'\"'", "'!'"),
        ("1.5e-3f", "1.5e+3f"),
        ("+=", "="),
    ],
)
def test_a_change_of_meaning_in_few_characters_changes_the_hash(old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    assert digest(SOURCE.replace(old, new)) != digest(SOURCE)


def test_two_kernels_that_swap_their_names_change_the_hash_of_a_launch() -> None:
    swapped = SOURCE.replace("scale(", "@(").replace("other(", "scale(").replace("@(", "other(")
    assert digest(swapped, "scale<2>") != digest(SOURCE, "scale<2>")


@pytest.mark.parametrize("changed", [{"grid": [2]}, {"block": [64]}, {"shared_mem": 4}, {"args": ["x", "y"]}])
def test_another_launch_changes_the_hash(changed: dict) -> None:
    assert digest(SOURCE, **changed) != digest(SOURCE)
    assert digest(SOURCE, "scale<4>") != digest(SOURCE)


def test_kernels_are_found_behind_launch_bounds_and_linkage() -> None:
    assert kernels_of(tokens(SOURCE)) == ("scale", "other")
    clustered = SOURCE.replace("__launch_bounds__", "__cluster_dims__(2, 1, 1) __launch_bounds__")
    assert kernels_of(tokens(clustered)) == ("scale", "other")


def test_every_launched_kernel_of_the_book_is_found() -> None:
    """Else its name would count as code."""
    for name in ladder_names():
        for rung in load_ladder(name):
            known = kernels_of(tokens(expand_includes(rung.path)))
            size = next(s for s in rung.ladder.problem.recorded if rung.rung.requires(s) is None)
            for launch in rung.launches(size):
                assert re.match(r"\w+", launch.kernel)[0] in known, f"{name} {rung.name}"


def test_a_moved_ladder_keeps_its_hashes(tmp_path: Path) -> None:
    """Another folder, other file names, another name of the rung and of its header."""
    ladder = load_ladder("conv2d")
    size = ladder.problem.check[0]
    moved = []

    def copy(path: Path, name: str) -> None:
        text = path.read_text(encoding="utf-8").replace("../../common/", "").replace('.cuh"', '_moved.cuh"')
        (tmp_path / name).write_text(text, encoding="utf-8")

    for rung in ladder:
        copy(rung.path, f"{rung.name}_moved.cu")
        moved.append(dataclasses.replace(rung.rung, name=f"{rung.name}_renamed", source=f"{rung.name}_moved.cu"))
    for header in (*(ladder.folder.parents[1] / "common").glob("*.cuh"), *ladder.folder.glob("*.cuh")):
        copy(header, f"{header.stem}_moved.cuh")
    elsewhere = dataclasses.replace(ladder, folder=tmp_path, rungs=tuple(moved))
    for rung in ladder:
        if rung.rung.requires(size) is None:
            assert elsewhere[f"{rung.name}_renamed"].sha256(size) == rung.sha256(size)
