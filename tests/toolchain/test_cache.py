"""The cache on disk: a kept result equals the made one, and anything that differs or is damaged is made again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from climb.toolchain import CompileError, cache, compilation, compile_cuda, disassemble, program

SOURCE = 'extern "C" __global__ void kept(float* a) { a[threadIdx.x] = N; }'


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The runs of NVRTC so far, with an empty folder as the cache and nothing remembered in this process."""
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    made, compiling = [], program.Program._compile

    def count(*args):
        made.append(args)
        return compiling(*args)

    monkeypatch.setattr(program.Program, "_compile", count)
    monkeypatch.setattr(compilation, "_cache", {})
    return made


def compile_again(source=SOURCE, **given):
    """Compile as a new process would, which remembers nothing."""
    compilation._cache.clear()
    return compile_cuda(source, filename="cache.cu", **{"options": ("-DN=1",), **given})


def test_kept_compilation_equals_the_first(runs):
    first = compile_again()
    second = compile_again()
    assert len(runs) == 1 and first.ptx == second.ptx and first.names == second.names and first.log == second.log
    assert first.cubin == compile_again().cubin and len(runs) == 2


def test_whole_keeps_ptx_and_machine_code_of_one_run(runs):
    whole = compile_again(whole=True)
    assert whole.cubin == compile_again(whole=True).cubin and len(runs) == 1
    assert compile_again(whole=True).ptx == compile_again().ptx and len(runs) == 2


def test_disassembly_is_kept(runs, monkeypatch):
    first = disassemble(compile_again(), "kept")
    monkeypatch.setattr(subprocess, "run", None)
    assert disassemble(compile_again(), "kept") == first and len(first) > 3


@pytest.mark.parametrize("given", [{"options": ("-DN=2",)}, {"arch": "sm_80"}, {"source": SOURCE + "\n"}])
def test_other_options_architecture_or_source_are_compiled(runs, given):
    compile_again()
    compile_again(**given)
    assert len(runs) == 2


def test_changed_header_is_compiled(runs, tmp_path):
    header = tmp_path / "own" / "n.cuh"
    header.parent.mkdir()
    found = []
    for value in (3, 4):
        header.write_text(f"#define M {value}\n", encoding="utf-8")
        source = '#include "n.cuh"\n' + SOURCE.replace("N", "M")
        found.append(compile_again(source, include_dirs=(header.parent,)).ptx)
    assert len(runs) == 2 and found[0] != found[1]


def test_damaged_file_is_made_again(runs):
    whole = compile_again()
    (path,) = (path for path in cache.FOLDER.rglob("*") if path.is_file())
    path.write_bytes(path.read_bytes()[:40])
    assert compile_again().ptx == whole.ptx and len(runs) == 2
    assert compile_again().ptx == whole.ptx and len(runs) == 2


def test_error_is_not_kept(runs):
    lengths = []
    for _ in range(2):
        with pytest.raises(CompileError):
            compile_again("nonsense")
        lengths.append(len(runs))  # a source that is wrong is compiled again for its messages
    assert lengths == [2, 4] and not any(path.is_file() for path in cache.FOLDER.rglob("*"))


def test_folder_that_cannot_be_made_disables_the_cache(runs, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "file" / "below")
    assert compile_again().ptx == compile_again().ptx and len(runs) == 2


def test_read_only_folder_disables_the_cache(runs, tmp_path, monkeypatch):
    """Root may write to a read-only folder, so the system's refusal is imitated."""

    def refuse(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    for name in ("mkdir", "write_bytes"):
        monkeypatch.setattr(Path, name, refuse)
    assert compile_again().ptx == compile_again().ptx and len(runs) == 2
    assert not list(tmp_path.rglob("*"))


def test_user_without_a_home_has_no_cache(runs, monkeypatch):
    monkeypatch.setattr(cache, "FOLDER", None)
    assert compile_again().ptx == compile_again().ptx and len(runs) == 2


class TestFolder:
    def test_checkout_keeps_results_in_build(self):
        root = Path(__file__).resolve().parents[2]
        assert cache.folder_below(root) == root / "_build" / "compiled"

    @pytest.mark.parametrize(
        ("system", "environ", "below"),
        [
            ("posix", {"XDG_CACHE_HOME": "/caches"}, "/caches/climb/compiled"),
            ("posix", {"XDG_CACHE_HOME": "relative"}, "~/.cache/climb/compiled"),
            ("posix", {"XDG_CACHE_HOME": ""}, "~/.cache/climb/compiled"),
            ("posix", {"LOCALAPPDATA": "/local"}, "~/.cache/climb/compiled"),
            ("nt", {"LOCALAPPDATA": "/local", "XDG_CACHE_HOME": "/caches"}, "/local/climb/compiled"),
            ("nt", {}, "~/.cache/climb/compiled"),
        ],
    )
    def test_installed_package_keeps_results_in_the_cache_directory_of_the_user(self, tmp_path, system, environ, below):
        assert cache.folder_below(tmp_path, environ, system) == Path(below).expanduser()

    def test_no_home_gives_no_folder(self, tmp_path, monkeypatch):
        def fail():
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", fail)
        assert cache.folder_below(tmp_path, {}) is None

    def test_installed_package_does_not_write_beside_itself(self, tmp_path):
        """A copy of the package in an empty folder, as pip installs it."""
        here = Path(cache.__file__).resolve().parents[1]
        shutil.copytree(here / "toolchain", tmp_path / "site" / "climb" / "toolchain")
        (tmp_path / "site" / "climb" / "__init__.py").write_text("")
        code = (
            "from climb.toolchain import compile_cuda, cache; "
            f"compile_cuda({SOURCE!r}, filename='a.cu', options=('-DN=1',)); print(cache.FOLDER)"
        )
        environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "XDG_CACHE_HOME": str(tmp_path / "caches")}
        environ["LOCALAPPDATA"] = environ["XDG_CACHE_HOME"]
        done = subprocess.run(
            [sys.executable, "-B", "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(tmp_path / "caches" / "climb" / "compiled")
        assert len([one for one in (tmp_path / "caches").rglob("*") if one.is_file()]) == 1
        assert sorted(one.name for one in (tmp_path / "site").iterdir()) == ["climb"]
