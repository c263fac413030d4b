"""NVIDIA's packages: where they are found, and what a message says when one is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from toolchain.sources import compiled_error

from climb.toolchain import ToolchainError, hints, includes, nvrtc, packages, tools
from climb.toolchain.includes import cuda_include_dirs, missing_package

#: A header of each package, with the pip package that brings it for CUDA 12 and for CUDA 13.
HEADERS = [
    ("cuda_fp16.h", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime==13.*"),
    ("cuda/std/array", "nvidia-cuda-cccl-cu12", "nvidia-cuda-cccl==13.*"),
    ("cub/cub.cuh", "nvidia-cuda-cccl-cu12", "nvidia-cuda-cccl==13.*"),
    ("crt/mma.h", "nvidia-cuda-nvcc-cu12", "nvidia-cuda-crt==13.*"),
]


def install_headers(root: Path, *parts: str, major: int = 12) -> Path:
    """Make `root` a site-packages folder with `parts` ("runtime", "cccl", "crt"), laid out as pip does for CUDA 12.

    `major` is the version that cuda.h states.
    """
    (root / "nvidia").mkdir()
    layout = {
        "runtime": ("cuda_runtime", "cuda.h", f"#define CUDA_VERSION {major}090\n"),
        "cccl": ("cuda_cccl", "cuda/std/array", ""),
        "crt": ("cuda_nvcc", "crt/mma.h", ""),
    }
    for part in parts:
        folder, name, text = layout[part]
        path = root / "nvidia" / folder / "include" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    if "runtime" in parts:
        (root / "nvidia/cuda_runtime/include/cuda_runtime.h").write_text("")
    return root


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that is the only place where packages, headers and tools may be."""
    monkeypatch.setattr(includes, "site_packages", lambda: [tmp_path])
    monkeypatch.setattr(tools, "site_packages", lambda: [tmp_path])
    monkeypatch.setattr(tools, "_TOOLKITS", ())
    candidates = includes._header_candidates
    monkeypatch.setattr(
        includes, "_header_candidates", lambda major: [one for one in candidates(major) if tmp_path in one.parents]
    )
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(includes, "cuda_include_dirs", cuda_include_dirs.__wrapped__)
    return tmp_path


class TestHeaders:
    def test_headers_of_three_packages_are_found(self, only: Path) -> None:
        install_headers(only, "runtime", "cccl", "crt")
        names = ("cuda_runtime", "cuda_cccl", "cuda_nvcc")
        assert includes.cuda_include_dirs(12) == tuple(only / "nvidia" / name / "include" for name in names)
        assert not any(missing_package(header, 12) for header, _, _ in HEADERS)

    @pytest.mark.parametrize(("header", "cuda12", "cuda13"), HEADERS)
    @pytest.mark.parametrize("major", [12, 13])
    def test_missing_package_of_a_header_is_named(
        self, only: Path, header: str, cuda12: str, cuda13: str, major: int
    ) -> None:
        installed = {"nvidia-cuda-runtime-cu12": (), "nvidia-cuda-cccl-cu12": ("runtime", "crt")}
        install_headers(only, *installed.get(cuda12, ("runtime", "cccl")), major=major)
        assert missing_package(header, major) == (
            f"`pip install {cuda12}`" if major == 12 else f'`pip install "{cuda13}"`'
        )

    def test_missing_curand_is_named_and_found_once_installed(self, only: Path) -> None:
        install_headers(only, "runtime", "cccl", "crt")
        assert missing_package("curand_kernel.h", 12) == "`pip install nvidia-curand-cu12`"
        assert missing_package("curand_kernel.h", 13) == '`pip install "nvidia-cuda-runtime==13.*"`'
        folder = only / "nvidia/curand/include"
        folder.mkdir(parents=True)
        (folder / "curand_kernel.h").write_text("")
        assert not missing_package("curand_kernel.h", 12) and includes.cuda_include_dirs(12)[-1] == folder

    def test_headers_of_another_major_version_are_not_used(self, only: Path) -> None:
        """A toolkit of CUDA 13 beside NVRTC 12: its headers do not compile, and the error says nothing of the cause."""
        install_headers(only, "runtime", "cccl", "crt")
        assert includes.cuda_include_dirs(13) == ()
        assert missing_package("cuda_fp16.h", 13) == '`pip install "nvidia-cuda-runtime==13.*"`'
        (only / "nvidia/cuda_runtime/include/cuda.h").unlink()
        assert includes.cuda_include_dirs(13), "headers that state no version may fit"

    def test_header_of_no_package_names_none(self, only: Path) -> None:
        install_headers(only, "runtime")
        assert missing_package("mine.cuh", 12) == ""

    def test_compile_error_names_the_package_of_all_headers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(includes, "cuda_include_dirs", lambda major: ())
        monkeypatch.setattr("climb.toolchain.program.cuda_include_dirs", lambda major: ())
        error = compiled_error("#include <cuda_fp16.h>\n// without the package of headers\n")
        assert "cuda_fp16.h" in error.diagnostics[0].message
        assert "not installed; install it with `pip install nvidia-cuda-runtime-cu12`" in str(error)
        assert error.diagnostics[0].line == 1

    @pytest.mark.parametrize(
        ("package", "source", "said"),
        [
            ("cuda_cccl", "#include <cooperative_groups/reduce.h>", "nvidia-cuda-cccl-cu12"),
            ("cuda_nvcc", "#include <mma.h>", "nvidia-cuda-nvcc-cu12"),
        ],
    )
    def test_compile_error_names_the_package_of_a_header(
        self, monkeypatch: pytest.MonkeyPatch, package: str, source: str, said: str
    ) -> None:
        """The real headers, without one of their packages."""
        kept = tuple(one for one in cuda_include_dirs(12) if package not in one.parts)
        assert len(kept) == len(cuda_include_dirs(12)) - 1
        for module in ("includes", "program", "file_names"):
            monkeypatch.setattr(f"climb.toolchain.{module}.cuda_include_dirs", lambda major: kept)
        assert f"`pip install {said}`" in str(compiled_error(source + "\n// without one package\n"))

    def test_host_header_is_no_missing_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(includes, "cuda_include_dirs", lambda major: ())
        (hint,) = hints._header_hints("stdio.h")
        assert "leave out stdio.h" in hint and "pip install" not in hint


class TestCompiler:
    def test_missing_bindings_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cuda.bindings", None)
        with pytest.raises(ToolchainError, match=r'`pip install "cuda-bindings==12\.\*"`'):
            nvrtc.library.__wrapped__()

    @pytest.mark.parametrize(
        ("major", "command"),
        [(12, "`pip install nvidia-cuda-nvrtc-cu12`"), (13, '`pip install "nvidia-cuda-nvrtc==13.*"`')],
    )
    def test_missing_nvrtc_is_named(self, monkeypatch: pytest.MonkeyPatch, major: int, command: str) -> None:
        """cuda-bindings load the NVRTC of their own major version."""
        from cuda.bindings import nvrtc as bindings

        def fail() -> None:
            raise RuntimeError("Failure finding libnvrtc.so\nattempts: ...")

        monkeypatch.setattr(bindings, "nvrtcVersion", fail)
        monkeypatch.setattr(nvrtc, "bindings_major", lambda: major)
        with pytest.raises(ToolchainError) as caught:
            nvrtc.library.__wrapped__()
        assert "(Failure finding libnvrtc.so)" in str(caught.value)
        assert str(caught.value).endswith(f"install it with {command}")

    def test_version_of_the_bindings_is_that_of_nvrtc(self) -> None:
        assert packages.bindings_major() == nvrtc.nvrtc_version()[0]


class TestTools:
    @pytest.mark.parametrize("tool", ["nvdisasm", "cuobjdump"])
    def test_missing_tool_is_named(self, tool: str, only: Path) -> None:
        with pytest.raises(ToolchainError, match=f"`pip install nvidia-cuda-{tool}`"):
            tools.find_tool.__wrapped__(tool)

    @pytest.mark.parametrize(
        "place", ["nvidia/cuda_nvdisasm/bin", "nvidia/cu13/bin", "nvidia/cu13/bin/x86_64", "cuda_home/bin", "."]
    )
    def test_tool_is_found_in_every_layout(self, monkeypatch: pytest.MonkeyPatch, only: Path, place: str) -> None:
        """pip's packages for CUDA 12, for 13, for 13 on Windows; a toolkit; a folder of PATH."""
        monkeypatch.setenv("CUDA_HOME", str(only / "cuda_home"))
        tool = only / place / "nvdisasm"
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        assert Path(tools.find_tool.__wrapped__("nvdisasm")) == tool


class TestSitePackages:
    def test_every_folder_with_nvidia_packages_is_searched(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """A virtual environment above the system's packages; an __init__.py in one must not hide the other."""
        for name in ("venv", "system", "empty"):
            (tmp_path / name).mkdir()
        (tmp_path / "venv" / "nvidia").mkdir()
        (tmp_path / "system" / "nvidia").mkdir()
        (tmp_path / "venv" / "nvidia" / "__init__.py").write_text("")
        monkeypatch.chdir(tmp_path / "venv")  # the working directory, "" in sys.path, is not searched
        monkeypatch.setattr(sys, "path", ["", *(str(tmp_path / name) for name in ("venv", "empty", "system", "venv"))])
        assert packages.site_packages() == [tmp_path / "venv", tmp_path / "system"]
