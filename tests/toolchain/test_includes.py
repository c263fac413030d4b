"""Headers: CUDA's own, those of the caller, and where their code appears in PTX and SASS."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from toolchain.sources import compiled_error

from climb.toolchain import compile_cuda, disassemble, includes
from climb.toolchain.includes import cuda_include_dirs, included_files, read_source
from climb.toolchain.nvrtc import nvrtc_version


class TestIncludes:
    SOURCE = '#include "twice.cuh"\nextern "C" __global__ void f(float* a) {\n    a[0] = twice(a[threadIdx.x]);\n}\n'
    HEADER = "#pragma once\n\n__device__ inline float twice(float x) {\n    float y = x;\n    return y * 2.0f;\n}\n"

    def test_cuda_headers_are_found(self) -> None:
        source = '#include <cuda_fp16.h>\nextern "C" __global__ void f(__half* a) { a[0] = __hadd(a[1], a[2]); }'
        assert "add" in compile_cuda(source, filename="half.cu").ptx
        assert cuda_include_dirs(nvrtc_version()[0])

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
    def test_cuda_headers_of_every_package_are_found(self, header: str, code: str) -> None:
        """Cooperative groups include libcu++ (package cccl); mma.h includes crt (package nvcc)."""
        source = f'#include <{header}>\nextern "C" __global__ void f(float* a) {{ {code} }}\n'
        compiled = compile_cuda(source, filename="f.cu")
        files = re.findall(r'\.file\s+\d+\s+"(.*)"', compiled.ptx)
        assert files[0] == "f.cu" and all(name.startswith("cuda/") for name in files[1:])

    def test_built_in_header_of_nvrtc_has_no_path(self) -> None:
        """NVRTC names its built-in header as a file of the working directory."""
        source = 'extern "C" __global__ void f(cudaTextureObject_t t, float* a) { a[0] = tex2D<float>(t, 0.f, 0.f); }\n'
        files = re.findall(r'\.file\s+\d+\s+"(.*)"', compile_cuda(source, filename="f.cu").ptx)
        assert files == ["f.cu", "cuda/__nv_nvrtc_builtin_header.h"]

    @pytest.mark.parametrize("how", ["include_dirs", "-I", "-I apart", "--include-path="])
    def test_header_of_an_include_directory_is_shown_by_its_name(self, tmp_path: Path, how: str) -> None:
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

    def test_changed_header_is_compiled_again(self, tmp_path: Path) -> None:
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

    def test_error_in_a_header_shows_the_line_of_the_header(self, tmp_path: Path) -> None:
        (tmp_path / "twice.cuh").write_text("#pragma once\n__device__ float twice(float x) { return y; }\n")
        (diagnostic,) = compiled_error(self.SOURCE, include_dirs=[tmp_path]).diagnostics
        assert (diagnostic.file, diagnostic.line) == ("twice.cuh", 2)
        assert "return y;" in diagnostic.text

    def test_inlined_code_of_a_cuda_header_counts_for_the_line_that_calls_it(self) -> None:
        """The shuffles and sums of cg::reduce come from three headers, which all end at the call on line 6."""
        source = """\
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void f(float* a) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    a[0] =
        cg::reduce(warp, a[threadIdx.x], cg::plus<float>());
}
"""
        instructions = disassemble(compile_cuda(source, filename="f.cu", whole=True), "f")
        assert {i.file for i in instructions} == {"f.cu"}
        assert {i.line for i in instructions if i.mnemonic in ("SHFL", "FADD")} == {6}
        assert len([i for i in instructions if i.mnemonic in ("SHFL", "FADD")]) == 10


@pytest.mark.parametrize("major", [12, 13])
def test_cupy_finds_the_headers_of_the_bindings_where_those_of_two_versions_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, major: int
) -> None:
    """An environment with PyTorch has two versions: PyTorch's CUDA is newer than the book's."""
    pathfinder = pytest.importorskip("cuda.pathfinder")
    layouts = {12: ("cuda_runtime/include", "cuda_cccl/include"), 13: ("cu13/include", "cu13/include/cccl")}
    for version, (runtime, cccl) in layouts.items():
        for folder, name, text in (
            (runtime, "cuda_runtime.h", ""),
            (runtime, "cuda.h", f"#define CUDA_VERSION {version}000"),
            (cccl, "cuda/std/version", ""),
        ):
            file = tmp_path / "nvidia" / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    asked = []
    monkeypatch.setattr(pathfinder, "find_nvidia_header_directory", lambda name: asked.append(name) or "elsewhere")
    monkeypatch.setattr(includes, "site_packages", lambda: [tmp_path])
    monkeypatch.setattr(includes, "bindings_major", lambda: major)
    monkeypatch.setattr(includes, "preload", lambda part: None)
    cuda_include_dirs.cache_clear()
    try:
        includes.before_cupy()
        asked.clear()
        found = [pathfinder.find_nvidia_header_directory(name) for name in ("cudart", "cccl", "cufft")]
    finally:
        cuda_include_dirs.cache_clear()
    assert found == [*(str(tmp_path / "nvidia" / folder) for folder in layouts[major]), "elsewhere"]
    assert asked == ["cufft"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_source_may_have_a_mark_windows_line_ends_and_letters_of_latin_1(encoding: str, tmp_path: Path) -> None:
    path, text = tmp_path / "a.cu", "// Größe\n__global__ void k() {}\n"
    path.write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert read_source(path) == text
    (tmp_path / "b.cu").write_text('#include "a.cu"')
    assert included_files('#include "b.cu"', [tmp_path])["a.cu"] == text
