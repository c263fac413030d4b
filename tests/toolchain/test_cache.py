"""Compilations that are kept: the same as made, made again when anything differs or the file is spoilt."""

from __future__ import annotations

import pytest

from climb.toolchain import CompileError, cache, compile_cuda, disassemble, nvrtc, sass

SOURCE = 'extern "C" __global__ void kept(float* a) { a[threadIdx.x] = N; }'


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """How often NVRTC ran, with an empty folder to keep things in and nothing remembered in this process."""
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    made, compiling = [], nvrtc._Program._compile

    def count(*args):
        made.append(args)
        return compiling(*args)

    monkeypatch.setattr(nvrtc._Program, "_compile", count)
    monkeypatch.setattr(nvrtc, "_cache", {})
    return made


def again(source=SOURCE, **given):
    nvrtc._cache.clear()
    return compile_cuda(source, filename="cache.cu", **{"options": ("-DN=1",), **given})


def test_what_is_kept_is_what_was_made(runs):
    first = again()
    second = again()
    assert len(runs) == 1 and first.ptx == second.ptx and first.names == second.names and first.log == second.log
    assert first.cubin == again().cubin and len(runs) == 2


def test_ptx_and_machine_code_of_one_run(runs):
    whole = again(whole=True)
    assert whole.cubin == again(whole=True).cubin and len(runs) == 1
    assert again(whole=True).ptx == again().ptx and len(runs) == 2


def test_what_is_disassembled_is_kept(runs, monkeypatch):
    first = disassemble(again(), "kept")
    monkeypatch.setattr(sass.subprocess, "run", None)
    assert disassemble(again(), "kept") == first and len(first) > 3


@pytest.mark.parametrize("given", [{"options": ("-DN=2",)}, {"arch": "sm_80"}, {"source": SOURCE + "\n"}])
def test_what_differs_is_compiled(runs, given):
    again()
    again(**given)
    assert len(runs) == 2


def test_a_header_that_changed_is_compiled(runs, tmp_path):
    header = tmp_path / "own" / "n.cuh"
    header.parent.mkdir()
    found = []
    for value in (3, 4):
        header.write_text(f"#define M {value}\n", encoding="utf-8")
        found.append(again('#include "n.cuh"\n' + SOURCE.replace("N", "M"), include_dirs=(header.parent,)).ptx)
    assert len(runs) == 2 and found[0] != found[1]


def test_a_spoilt_file_is_made_again(runs):
    whole = again()
    (path,) = (path for path in cache.FOLDER.rglob("*") if path.is_file())
    path.write_bytes(path.read_bytes()[:40])
    assert again().ptx == whole.ptx and len(runs) == 2
    assert again().ptx == whole.ptx and len(runs) == 2


def test_an_error_is_not_kept(runs):
    for _ in range(2):
        with pytest.raises(CompileError):
            again("nonsense")
    assert len(runs) == 2 and not any(path.is_file() for path in cache.FOLDER.rglob("*"))


def test_a_folder_that_cannot_be_written_does_no_harm(runs, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(cache, "FOLDER", tmp_path / "file" / "below")
    assert again().ptx == again().ptx and len(runs) == 2
