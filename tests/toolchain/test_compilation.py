"""Compiling CUDA C++ to PTX and machine code with NVRTC, without a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from toolchain.sources import BETWEEN, COPY, NEWEST, OLDEST, TILE
from tools.code import memory_instructions
from tools.thorough import thorough

from climb.toolchain import CompileError, KernelNotFound, check_syntax, compilation, compile_cuda, disassemble
from climb.toolchain.options import DEFAULT_OPTIONS


class TestCompiling:
    @pytest.mark.parametrize("arch", [OLDEST, *(thorough(arch) for arch in BETWEEN), NEWEST])
    def test_every_architecture_gives_ptx_and_machine_code(self, arch: str) -> None:
        compiled = compile_cuda(COPY, filename="copy.cu", arch=arch)
        assert f".target {arch}" in compiled.ptx
        assert compiled.cubin[:4] == b"\x7fELF"
        assert compiled.kernels == ("copy",)
        opcodes = [i.opcode for i in disassemble(compiled, "copy")]
        assert any(o.startswith("LDG.E.128") for o in opcodes)
        assert any(o.startswith("STG.E.128") for o in opcodes)

    def test_virtual_and_real_architecture_give_the_same_ptx(self) -> None:
        """The emulator runs the PTX of one compilation, SASS is read from another: their accesses must be the same."""
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"])
        ours, theirs = memory_instructions(compiled)
        assert len(ours) >= 7
        assert theirs == ours

    def test_whole_gives_the_ptx_and_machine_code_of_two_runs(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"])
        both = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"], whole=True)
        assert (both.ptx, both.cubin, both.names) == (compiled.ptx, compiled.cubin, compiled.names)
        assert "registers" in both.ptxas_report and both.diagnostics == compiled.diagnostics
        kept = compiled.with_code("// PTX", b"code", ("/elsewhere",))
        assert (kept.ptx, kept.cubin, kept.source, kept.include_dirs) == ("// PTX", b"code", TILE, ("/elsewhere",))

    def test_ptx_is_the_same_in_every_working_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        here = compile_cuda(COPY, filename="copy/float4.cu").ptx
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(compilation, "_cache", {})
        assert compile_cuda(COPY, filename="copy/float4.cu").ptx == here
        assert re.findall(r'\.file\s+\d+\s+"(.*)"', here) == ["copy/float4.cu"]

    @pytest.mark.parametrize("given", ["/home/someone/a.cu", "../a.cu", "/a.cu", "a.cu"])
    def test_only_the_last_part_of_an_absolute_path_is_kept(self, given: str) -> None:
        compiled = compile_cuda(COPY, filename=given)
        assert compiled.filename == "a.cu"
        assert '"a.cu"' in compiled.ptx
        assert "someone" not in compiled.ptx

    def test_each_template_instance_has_a_lowered_name(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<16>", "flip<32>"])
        assert set(compiled.names) == {"flip<16>", "flip<32>"}
        assert set(compiled.names.values()) == set(compiled.kernels)
        assert compiled.lowered("flip<16>") != compiled.lowered("flip<32>")

    def test_unknown_kernel_is_refused_with_a_list_of_kernels(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<16>"])
        with pytest.raises(KernelNotFound, match=r"no kernel 'flop'; it has 'flip<16>'"):
            compiled.lowered("flop")

    def test_plain_name_of_a_mangled_kernel_is_explained(self) -> None:
        compiled = compile_cuda("__global__ void plain(int* a) { *a = 1; }", filename="plain.cu")
        with pytest.raises(KernelNotFound, match=r'extern "C", or pass name_expressions=\("plain",\)'):
            compiled.lowered("plain")

    def test_equal_compilations_are_one_object(self) -> None:
        first = compile_cuda(COPY, filename="copy.cu")
        assert compile_cuda(COPY, filename="copy.cu") is first
        assert compile_cuda(COPY + "\n", filename="copy.cu") is not first
        assert compile_cuda(COPY, filename="copy.cu", options=["-DX"]) is not first
        assert compile_cuda(COPY, filename="copy.cu", arch="sm_80") is not first

    def test_options_of_the_caller_override_the_defaults(self) -> None:
        source = 'extern "C" __global__ void f(float* a) { *a = a[1] * __cplusplus; }'
        by_default = compile_cuda(source, filename="f.cu").ptx
        newer = compile_cuda(source, filename="f.cu", options=["--std=c++20"]).ptx
        assert by_default != newer
        assert "mul.ftz.f32" in by_default, "CuPy compiles with -ftz=true"
        assert "mul.f32" in compile_cuda(source, filename="f.cu", options=["-ftz=false"]).ptx

    def test_default_options_are_those_of_cupy(self) -> None:
        compiler = pytest.importorskip("cupy.cuda.compiler").__file__
        text = Path(compiler).read_text(encoding="utf-8")
        assert "options += ('-ftz=true',)" in text
        assert "options += ('--device-as-default-execution-space',)" in text
        assert {"-ftz=true", "-default-device"} <= set(DEFAULT_OPTIONS)

    @pytest.mark.parametrize("option", ["-arch=sm_80", "--gpu-architecture=sm_80"])
    def test_architecture_among_the_options_is_refused(self, option: str) -> None:
        with pytest.raises(ValueError, match="arch="):
            compile_cuda(COPY, filename="copy.cu", options=[option])

    def test_string_in_place_of_a_sequence_is_refused(self) -> None:
        with pytest.raises(TypeError, match="sequences"):
            compile_cuda(COPY, filename="copy.cu", options="-DX")
        with pytest.raises(TypeError, match="sequences"):
            compile_cuda(COPY, filename="copy.cu", name_expressions="copy")

    def test_warnings_are_in_diagnostics(self) -> None:
        compiled = compile_cuda('extern "C" __global__ void f(int* a) {\n    int unused = 3;\n}\n', filename="f.cu")
        (warning,) = compiled.diagnostics
        assert (warning.severity, warning.file, warning.line) == ("warning", "f.cu", 2)
        assert "unused" in warning.message


def test_check_syntax_finds_an_error_of_one_architecture() -> None:
    source = 'extern "C" __global__ void k() {\n#if __CUDA_ARCH__ >= 900\n    nonsense;\n#endif\n}'
    check_syntax(source, filename="k.cu", arch="sm_89")
    with pytest.raises(CompileError, match="nonsense"):
        check_syntax(source, filename="k.cu", arch="sm_100")


def test_check_syntax_instantiates_the_templates_that_are_named() -> None:
    source = "template <int N> __global__ void k() {\n    static_assert(N < 9);\n}"
    check_syntax(source, filename="k.cu", name_expressions=("k<8>",))
    with pytest.raises(CompileError, match=r"k\.cu:2: error: static assertion failed"):
        check_syntax(source, filename="k.cu", name_expressions=("k<9>",))
