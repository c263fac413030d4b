"""ptxas makes of kept PTX what NVRTC makes of the source, and is used only where that is so."""

from __future__ import annotations

import dataclasses

import pytest
from toolchain.sources import compiled_error

from climb.bench.registry import load_ladder
from climb.toolchain import assembler, cache, compilation, minimal, resources
from climb.toolchain.compilation import Compiled, compile_cuda
from climb.toolchain.nvrtc import nvrtc_version
from climb.toolchain.options import DEFAULT_OPTIONS
from climb.toolchain.program import Program

#: A source that is too long to be compiled without NVRTC's declarations.
LONG = f"// {'-' * minimal.SMALL}\n"
KERNEL = LONG + 'extern "C" __global__ void f(float* x) { x[threadIdx.x] *= 2; }\n'

pytestmark = pytest.mark.skipif(not assembler.serves(DEFAULT_OPTIONS), reason="needs ptxas of NVRTC's version")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nothing on disk; lists for each run of NVRTC the architecture that it compiles for."""
    made: list[str] = []
    run = Program._compile
    monkeypatch.setattr(cache, "FOLDER", None)
    monkeypatch.setattr(compilation, "_cache", {})
    monkeypatch.setattr(
        Program, "_compile", lambda self, given, arch: (made.append(given[0]), run(self, given, arch))[1]
    )
    return made


def by_nvrtc(compiled: Compiled) -> Compiled:
    """The same source, whose machine code is made by NVRTC."""
    program = compiled._program
    log, images, _ = program._run(program._cubin_flags(compiled.arch, compiled.options), compiled.arch, "cubin")
    return dataclasses.replace(compiled, ptx=images["ptx"].decode(), made_with=(images["cubin"], log))


@pytest.mark.parametrize(
    ("ladder", "rung"), [("sgemm", "square"), ("classifier_tensor", "clusters"), ("conv3d", "karatsuba")]
)
def test_machine_code_and_resources_are_those_of_nvrtc(ladder: str, rung: str) -> None:
    bound, sizes = load_ladder(ladder)[rung], load_ladder(ladder).problem.check
    size = next(size for size in sizes if bound.rung.requires(size) is None)
    theirs = by_nvrtc(bound.compiled(size))
    # From the same PTX: in each run NVRTC may order the code of these kernels otherwise.
    ours = dataclasses.replace(theirs, made_with=assembler.assemble(theirs.ptx.encode(), theirs.arch))
    assert not ours._program._minimal() and ours.cubin == theirs.cubin
    assert [resources(ours, name) for name in ours.kernels] == [resources(theirs, name) for name in ours.kernels]
    assert ours.diagnostics == theirs.diagnostics


def test_a_source_is_compiled_once_for_a_launch_and_for_machine_code(runs: list[str]) -> None:
    launched = compile_cuda(KERNEL, filename="once.cu")
    whole = compile_cuda(KERNEL, filename="once.cu", whole=True)
    assert whole.cubin == launched.cubin == by_nvrtc(whole).cubin and whole.ptx == launched.ptx
    assert runs[:-1] == ["-arch=compute_90"] * 3 and runs[-1] == "-arch=sm_90"  # nothing is kept on disk here


@pytest.mark.parametrize(
    "options", [("-maxrregcount=32",), ("-G",), ("--ptxas-options=-O0",), ("-rdc=true",), ("-Xptxas", "-O1")]
)
def test_options_that_ptxas_would_have_to_know_leave_it_to_nvrtc(options: tuple[str, ...]) -> None:
    assert not assembler.serves((*DEFAULT_OPTIONS, *options))
    assert assembler.serves((*DEFAULT_OPTIONS, "-DN=3", "--use_fast_math", "-fmad=false"))


def test_a_limit_of_registers_is_obeyed(runs: list[str]) -> None:
    source = KERNEL.replace("x[threadIdx.x] *= 2;", "float y[40]; for (int i = 0; i < 40; i++) y[i] = x[i * 7];"
                            "__syncthreads(); for (int i = 0; i < 40; i++) x[i] = y[i] * y[(i * 7) % 40];")  # fmt: skip
    wide, narrow = (
        resources(compile_cuda(source, filename="limit.cu", options=options), "f").registers
        for options in ((), ("-maxrregcount=32",))
    )
    assert narrow <= 32 < wide and runs.count("-arch=sm_90") == 1


@pytest.mark.parametrize("found", [None, (1, 0), (nvrtc_version()[0], nvrtc_version()[1] + 1)])
def test_without_the_ptxas_of_its_version_nvrtc_makes_the_machine_code(
    runs: list[str], monkeypatch: pytest.MonkeyPatch, found: tuple[int, int] | None
) -> None:
    monkeypatch.setattr(assembler, "_version", lambda: found)
    assert compile_cuda(KERNEL, filename="elsewhere.cu", whole=True).cubin[:4] == b"\x7fELF"
    assert runs == ["-arch=sm_90"]


def test_error_of_ptxas_is_told_as_nvrtc_tells_it() -> None:
    error = compiled_error(LONG + 'extern "C" __global__ void f(int* a) {\n    asm("foo.bar %0;" : "=r"(*a));\n}\n')
    assert 'bad.cu:3: asm("foo.bar' in str(error)
