"""From source to PTX, cubin and SASS, with no GPU."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from tools.code import memory_instructions

from climb.toolchain import (
    CompileError,
    KernelNotFound,
    ToolchainError,
    compile_cuda,
    disassemble,
    nvrtc,
    resources,
    sass,
)
from climb.toolchain.includes import cuda_include_dirs, included_files

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")

COPY = """\
extern "C" __global__ void copy(const float4* __restrict__ in, float4* __restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = in[i];
        out[i] = v;
    }
}
"""

TILE = """\
template <int T>
__global__ void flip(const float* in, float* out) {
    __shared__ float tile[T][T + 1];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * T + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * T + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""

# Forty values alive at once: they fit into 255 registers, and not into 32.
HUNGRY = """\
extern "C" __global__ void hungry(float* a, int n) {
    float x[40];
    for (int i = 0; i < 40; i++) x[i] = a[i * n + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 40; i++) a[i * n + threadIdx.x] = x[i] * x[(i * 7) % 40];
}
"""


def compiled_error(source: str, **options: object) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compile_cuda(source, filename="bad.cu", **options).cubin  # noqa: B018 (machine code is made when asked for)
    return caught.value


class TestCompiling:
    @pytest.mark.parametrize("arch", ARCHITECTURES)
    def test_every_architecture(self, arch: str) -> None:
        compiled = compile_cuda(COPY, filename="copy.cu", arch=arch)
        assert f".target {arch}" in compiled.ptx
        assert compiled.cubin[:4] == b"\x7fELF"
        assert compiled.kernels == ("copy",)
        opcodes = [i.opcode for i in disassemble(compiled, "copy")]
        assert any(o.startswith("LDG.E.128") for o in opcodes)
        assert any(o.startswith("STG.E.128") for o in opcodes)

    def test_virtual_and_real_architecture_give_the_same_ptx(self) -> None:
        """The emulator runs the PTX of one compilation, SASS comes from another; they must be of the same code."""
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"])
        ours, theirs = memory_instructions(compiled)
        assert len(ours) >= 7
        assert theirs == ours

    @pytest.mark.parametrize(
        ("source", "hint"),
        [
            ('#include <stdio.h>\n__global__ void k() { printf("a"); }', "leave out stdio.h, and what runs"),
            ("#include <cuda/nowhere>\n__global__ void k() {}", ""),
            ("__global__ void k() {}\nint main() { void* p; cudaMalloc(&p, 4); }", "such as main and cudaMalloc"),
        ],
    )
    def test_host_code_gets_a_hint(self, source: str, hint: str) -> None:
        said = str(compiled_error(source))
        assert hint in said and ("leave out" in said) == bool(hint)

    def test_both_from_one_run(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"])
        both = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"], whole=True)
        assert (both.ptx, both.cubin, both.names) == (compiled.ptx, compiled.cubin, compiled.names)
        assert "registers" in both.ptxas_report and both.diagnostics == compiled.diagnostics
        kept = compiled.with_code("// PTX", b"code", ("/elsewhere",))
        assert (kept.ptx, kept.cubin, kept.source, kept.include_dirs) == ("// PTX", b"code", TILE, ("/elsewhere",))

    def test_ptx_names_no_path_of_this_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        here = compile_cuda(COPY, filename="copy/float4.cu").ptx
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(nvrtc, "_cache", {})
        assert compile_cuda(COPY, filename="copy/float4.cu").ptx == here
        assert re.findall(r'\.file\s+\d+\s+"(.*)"', here) == ["copy/float4.cu"]

    @pytest.mark.parametrize("given", ["/home/someone/a.cu", "../a.cu", "/a.cu", "a.cu"])
    def test_a_path_of_this_machine_is_not_kept(self, given: str) -> None:
        compiled = compile_cuda(COPY, filename=given)
        assert compiled.filename == "a.cu"
        assert '"a.cu"' in compiled.ptx
        assert "someone" not in compiled.ptx

    def test_template_names(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<16>", "flip<32>"])
        assert set(compiled.names) == {"flip<16>", "flip<32>"}
        assert set(compiled.names.values()) == set(compiled.kernels)
        assert compiled.lowered("flip<16>") != compiled.lowered("flip<32>")

    def test_a_kernel_that_is_not_there(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<16>"])
        with pytest.raises(KernelNotFound, match=r"no kernel 'flop'; it has 'flip<16>'"):
            compiled.lowered("flop")

    def test_a_mangled_kernel_asked_for_by_its_plain_name(self) -> None:
        compiled = compile_cuda("__global__ void plain(int* a) { *a = 1; }", filename="plain.cu")
        with pytest.raises(KernelNotFound, match=r'extern "C", or pass name_expressions=\("plain",\)'):
            compiled.lowered("plain")

    def test_cached_by_content(self) -> None:
        first = compile_cuda(COPY, filename="copy.cu")
        assert compile_cuda(COPY, filename="copy.cu") is first
        assert compile_cuda(COPY + "\n", filename="copy.cu") is not first
        assert compile_cuda(COPY, filename="copy.cu", options=["-DX"]) is not first
        assert compile_cuda(COPY, filename="copy.cu", arch="sm_80") is not first

    def test_options_of_the_caller_win(self) -> None:
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
        assert {"-ftz=true", "-default-device"} <= set(nvrtc.DEFAULT_OPTIONS)

    @pytest.mark.parametrize("option", ["-arch=sm_80", "--gpu-architecture=sm_80"])
    def test_the_architecture_is_no_option(self, option: str) -> None:
        with pytest.raises(ValueError, match="arch="):
            compile_cuda(COPY, filename="copy.cu", options=[option])

    def test_one_string_is_not_a_sequence_of_options(self) -> None:
        with pytest.raises(TypeError, match="sequences"):
            compile_cuda(COPY, filename="copy.cu", options="-DX")
        with pytest.raises(TypeError, match="sequences"):
            compile_cuda(COPY, filename="copy.cu", name_expressions="copy")

    def test_warnings_are_kept(self) -> None:
        compiled = compile_cuda('extern "C" __global__ void f(int* a) {\n    int unused = 3;\n}\n', filename="f.cu")
        (warning,) = compiled.diagnostics
        assert (warning.severity, warning.file, warning.line) == ("warning", "f.cu", 2)
        assert "unused" in warning.message


class TestIncludes:
    SOURCE = '#include "twice.cuh"\nextern "C" __global__ void f(float* a) {\n    a[0] = twice(a[threadIdx.x]);\n}\n'
    HEADER = "#pragma once\n\n__device__ inline float twice(float x) {\n    float y = x;\n    return y * 2.0f;\n}\n"

    def test_headers_of_cuda_are_found(self) -> None:
        source = '#include <cuda_fp16.h>\nextern "C" __global__ void f(__half* a) { a[0] = __hadd(a[1], a[2]); }'
        assert "add" in compile_cuda(source, filename="half.cu").ptx
        assert cuda_include_dirs(nvrtc.nvrtc_version()[0])

    def test_no_headers_says_which_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nvrtc, "cuda_include_dirs", lambda major: ())
        error = compiled_error("#include <cuda_fp16.h>\n// only here\n")
        assert "nvidia-cuda-runtime" in str(error)
        assert error.diagnostics[0].line == 1

    @pytest.mark.parametrize(
        ("header", "code"),
        [
            ("cooperative_groups.h", "cooperative_groups::this_thread_block().sync();"),
            ("cooperative_groups/reduce.h", "a[0] = sizeof(cooperative_groups::plus<float>);"),
            ("mma.h", "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> c; a[0] = c.num_elements;"),
            ("cuda/std/array", "a[0] = cuda::std::array<float, 3>{1, 2, 3}[2];"),
            ("cuda_pipeline_primitives.h", "__pipeline_commit();"),
        ],
    )
    def test_headers_that_need_other_packages_are_found(self, header: str, code: str) -> None:
        """Cooperative groups include libcu++, mma.h includes crt."""
        source = f'#include <{header}>\nextern "C" __global__ void f(float* a) {{ {code} }}\n'
        compiled = compile_cuda(source, filename="f.cu")
        files = re.findall(r'\.file\s+\d+\s+"(.*)"', compiled.ptx)
        assert files[0] == "f.cu" and all(name.startswith("cuda/") for name in files[1:])

    def test_nvrtcs_own_header_has_no_path(self) -> None:
        """NVRTC names it as a file of the working directory."""
        source = 'extern "C" __global__ void f(cudaTextureObject_t t, float* a) { a[0] = tex2D<float>(t, 0.f, 0.f); }\n'
        files = re.findall(r'\.file\s+\d+\s+"(.*)"', compile_cuda(source, filename="f.cu").ptx)
        assert files == ["f.cu", "cuda/__nv_nvrtc_builtin_header.h"]

    @pytest.mark.parametrize("how", ["include_dirs", "-I", "-I apart", "--include-path="])
    def test_a_header_of_ours(self, tmp_path: Path, how: str) -> None:
        (tmp_path / "twice.cuh").write_text(self.HEADER)
        given = {
            "include_dirs": {"include_dirs": [tmp_path]},
            "-I": {"options": [f"-I{tmp_path}"]},
            "-I apart": {"options": ["-I", str(tmp_path)]},
            "--include-path=": {"options": [f"--include-path={tmp_path}"]},
        }[how]
        compiled = compile_cuda(self.SOURCE, filename="f.cu", **given)
        assert str(tmp_path) not in compiled.ptx
        assert re.findall(r'\.file\s+\d+\s+"(.*)"', compiled.ptx) == ["f.cu", "twice.cuh"]
        assert compiled.sources == {"f.cu": self.SOURCE, "twice.cuh": self.HEADER}
        (multiply,) = [i for i in disassemble(compiled, "f") if i.mnemonic in ("FMUL", "FADD")]
        assert (multiply.file, multiply.line) == ("twice.cuh", 5)

    def test_a_changed_header_compiles_again(self, tmp_path: Path) -> None:
        header = tmp_path / "twice.cuh"
        header.write_text(self.HEADER)
        before = compile_cuda(self.SOURCE, filename="f.cu", include_dirs=[tmp_path])
        header.write_text(self.HEADER.replace("2.0f", "3.0f"))
        after = compile_cuda(self.SOURCE, filename="f.cu", include_dirs=[tmp_path])
        assert before.ptx != after.ptx

    def test_included_files_follows_headers_into_headers(self, tmp_path: Path) -> None:
        (tmp_path / "a.cuh").write_text('  #  include "b.cuh"\n#include "a.cuh"\n')
        (tmp_path / "b.cuh").write_text("#include <cuda_fp16.h>\n")
        found = included_files('#include "a.cuh"\n', [tmp_path])
        assert set(found) == {"a.cuh", "b.cuh"}

    def test_an_error_in_a_header_shows_its_line(self, tmp_path: Path) -> None:
        (tmp_path / "twice.cuh").write_text("#pragma once\n__device__ float twice(float x) { return y; }\n")
        (diagnostic,) = compiled_error(self.SOURCE, include_dirs=[tmp_path]).diagnostics
        assert (diagnostic.file, diagnostic.line) == ("twice.cuh", 2)
        assert "return y;" in diagnostic.text


class TestErrors:
    def test_shows_line_and_caret(self) -> None:
        source = 'extern "C" __global__ void f(int* a) {\n    int i = threadIdx.x;\n    a[i] = missing;\n}\n'
        error = compiled_error(source)
        (diagnostic,) = error.diagnostics
        assert (diagnostic.file, diagnostic.line, diagnostic.severity) == ("bad.cu", 3, "error")
        shown = str(error).splitlines()
        assert shown[0] == "bad.cu does not compile for sm_90"
        assert shown[1] == 'bad.cu:3: error: identifier "missing" is undefined'
        assert shown[2].endswith("    a[i] = missing;")
        assert shown[3].index("^") == shown[2].index("missing")

    def test_a_tab_does_not_move_the_caret(self) -> None:
        error = compiled_error('extern "C" __global__ void f(int* a) {\n\t\ta[0] = missing;\n}\n')
        shown = str(error).splitlines()
        assert shown[3].expandtabs(4).index("^") == shown[2].expandtabs(4).index("missing")

    def test_every_error_is_there_and_warnings_are_not(self) -> None:
        source = "__global__ void f(int* a) {\n    int unused;\n    a[0] = one;\n    a[1] = two;\n}\n"
        error = compiled_error(source)
        assert [d.line for d in error.diagnostics] == [3, 4]
        assert "unused" not in str(error)

    def test_where_a_template_was_instantiated(self) -> None:
        source = (
            'template <int T> __global__ void f(int* a) {\n    static_assert(T % 32 == 0, "T is whole warps");\n}\n'
        )
        error = compiled_error(source, name_expressions=["f<33>"])
        assert "T is whole warps" in str(error)
        assert "f<T>" in str(error)
        assert "T=33" in str(error)

    def test_unknown_option(self) -> None:
        assert "no option '--fast'" in str(compiled_error(COPY, options=["--fast"]))

    def test_unknown_architecture(self) -> None:
        assert "no architecture 'sm_91'" in str(compiled_error(COPY, arch="sm_91"))

    def test_a_name_expression_without_a_kernel(self) -> None:
        shown = str(compiled_error(TILE, name_expressions=["flop<32>", "flip<32>"]))
        assert "'flop<32>' names no kernel" in shown
        assert "The source declares: flip" in shown
        assert "__nv_name_map" not in shown
        assert "'flip<32>'" not in shown

    def test_a_template_without_its_arguments(self) -> None:
        assert "'flip' names no kernel" in str(compiled_error(TILE, name_expressions=["flip"]))

    def test_too_much_shared_memory_says_what_to_do(self) -> None:
        source = """extern "C" __global__ void f(int* a) {
            __shared__ int s[20000];
            s[threadIdx.x] = a[threadIdx.x];
            __syncthreads();
            a[threadIdx.x] = s[threadIdx.x ^ 1];
        }"""
        shown = str(compiled_error(source))
        assert "80000 bytes" in shown
        assert "49152" in shown
        assert "extern __shared__" in shown

    def test_ptxas_shows_the_source_line(self) -> None:
        error = compiled_error('extern "C" __global__ void f(int* a) {\n    asm("foo.bar %0;" : "=r"(*a));\n}\n')
        assert "foo.bar" in error.diagnostics[0].text
        assert 'bad.cu:2: asm("foo.bar' in str(error)

    def test_ipython_shows_the_compiler_alone(self) -> None:
        shown = "".join(compiled_error("__global__ void f() { x; }")._render_traceback_())
        assert "nvrtc.py" not in shown
        assert 'identifier "x" is undefined' in shown

    def test_no_bindings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "cuda.bindings", None)
        with pytest.raises(ToolchainError, match="cuda-bindings"):
            nvrtc._nvrtc.__wrapped__()


class TestSass:
    @pytest.mark.parametrize("arch", ARCHITECTURES)
    def test_nvdisasm_agrees_with_cuobjdump(self, arch: str) -> None:
        """nvdisasm 13 warns that it switches to an old format for NVRTC 12's cubins; the instructions are right."""
        compiled = compile_cuda(TILE + COPY, filename="both.cu", name_expressions=["flip<32>"], arch=arch)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.cubin")
            path.write_bytes(compiled.cubin)
            listing = subprocess.run(
                [sass._find_tool("cuobjdump"), "-sass", str(path)], capture_output=True, text=True, check=True
            ).stdout
        for kernel, body in re.findall(r"Function : (\S+)\n(.*?)\n\s*\.{5,}", listing, re.DOTALL):
            theirs = re.findall(r"/\*([0-9a-f]{4})\*/\s+(@!?U?P\w+)?\s*([\w.]+)", body)
            ours = [(f"{i.offset:04x}", i.predicate, i.opcode) for i in disassemble(compiled, kernel)]
            assert len(ours) >= 8
            assert ours == theirs[: len(ours)]
            assert {opcode for _, _, opcode in theirs[len(ours) :]} <= {"BRA", "NOP"}

    def test_source_lines(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"])
        lines = {
            i.mnemonic: i.line
            for i in disassemble(compiled, "flip<32>")
            if i.mnemonic in ("LDG", "STS", "LDS", "STG", "BAR")
        }
        assert lines == {"LDG": 4, "STS": 4, "BAR": 5, "LDS": 6, "STG": 6}
        assert {i.file for i in disassemble(compiled, "flip<32>")} == {"tile.cu"}

    def test_predicates_and_operands(self) -> None:
        instructions = disassemble(compile_cuda(COPY, filename="copy.cu"), "copy")
        (leave,) = [i for i in instructions if i.opcode == "EXIT" and i.predicate]
        assert re.fullmatch(r"@!?P\d", leave.predicate)
        (load,) = [i for i in instructions if i.mnemonic == "LDG"]
        assert load.opcode.startswith("LDG.E.128")
        assert re.match(r"R\d+, ", load.operands)
        assert instructions[-1].opcode == "EXIT"

    def test_a_kernel_that_is_not_there(self) -> None:
        with pytest.raises(KernelNotFound):
            disassemble(compile_cuda(COPY, filename="copy.cu"), "flip")

    @pytest.mark.parametrize("arch", ARCHITECTURES)
    def test_shared_memory_is_what_the_source_declares(self, arch: str) -> None:
        found = resources(compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"], arch=arch), "flip<32>")
        assert found.shared_bytes == 32 * 33 * 4
        assert found.reserved_shared_bytes == (1024 if int(arch[3:]) >= 90 else 0)
        assert found.barriers == 1
        assert 0 < found.registers < 64

    def test_spills(self) -> None:
        free = resources(compile_cuda(HUNGRY, filename="hungry.cu"), "hungry")
        assert not free.spills
        assert free.local_bytes == 0
        assert free.registers > 40
        tight = resources(compile_cuda(HUNGRY, filename="hungry.cu", options=["-maxrregcount=32"]), "hungry")
        assert tight.spills
        assert tight.registers == 32
        assert tight.stack_bytes >= (40 - 32) * 4
        assert tight.spill_store_bytes > 0
        assert tight.spill_load_bytes > 0

    def test_constants_hold_the_parameters(self) -> None:
        two = resources(compile_cuda(HUNGRY, filename="hungry.cu"), "hungry")
        three = resources(compile_cuda(COPY, filename="copy.cu"), "copy")
        assert three.constant_bytes - two.constant_bytes == 20 - 12  # pointer, pointer, int against pointer, int

    @pytest.mark.parametrize("tool", ["nvdisasm", "cuobjdump"])
    def test_a_missing_tool_names_its_package(self, tool: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(sass, "site_packages", lambda: [tmp_path])
        monkeypatch.setattr(sass, "_TOOLKITS", ())
        for variable in ("CUDA_PATH", "CUDA_HOME"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ToolchainError, match=f"nvidia-cuda-{tool}"):
            sass._find_tool.__wrapped__(tool)

    def test_a_tool_in_cuda_home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        tool = tmp_path / "bin" / "nvdisasm"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        monkeypatch.setattr(sass, "site_packages", list)
        monkeypatch.setattr(sass, "_TOOLKITS", ())
        monkeypatch.delenv("CUDA_PATH", raising=False)
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
        assert sass._find_tool.__wrapped__("nvdisasm") == str(tool)


def test_the_front_end_alone_finds_an_error_for_an_architecture():
    source = 'extern "C" __global__ void k() {\n#if __CUDA_ARCH__ >= 900\n    nonsense;\n#endif\n}'
    compiled = compile_cuda(source, filename="k.cu", arch="sm_80")
    compiled.check_syntax("sm_89")
    with pytest.raises(CompileError, match="nonsense"):
        compiled.check_syntax("sm_100")
