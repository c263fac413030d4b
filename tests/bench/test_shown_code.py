"""Chapters show the same machine code in every process, also of rungs for which NVRTC makes more than one."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from climb import paths
from climb.bench import records, shown_code
from climb.bench.ladder import BoundRung
from climb.bench.machine_code import fma_bank_reads, opcodes
from climb.bench.registry import load_ladder
from climb.bench.shown_code import SHOWN, ShownCode, code_path, kept_codes, shown_codes, shown_size
from climb.cli import main
from climb.toolchain import Compiled, ToolchainError, disassemble
from climb.toolchain.machine_bytes import instruction_bytes
from climb.toolchain.nvrtc import nvrtc_version

EVERY = [load_ladder(ladder)[rung] for ladder, rung in sorted(SHOWN)]
NAMES = [f"{rung.ladder.name}-{rung.name}" for rung in EVERY]


def test_no_code_is_kept_of_a_rung_that_is_not_shown() -> None:
    kept = {path for gpu in records.RECORDS.iterdir() for path in gpu.glob("code/*.json")}
    assert kept == {code_path(ladder, rung) for ladder, rung in SHOWN}, "an orphan, or missing: climb keep-code"


@pytest.mark.parametrize("rung", EVERY, ids=NAMES)
def test_kept_code_is_todays_source_by_todays_compiler(rung: BoundRung) -> None:
    assert shown_code.is_fresh(rung), "stale: climb keep-code"
    held = records.load(code_path(rung.ladder.name, rung.name), ShownCode)
    assert held.nvrtc == ".".join(map(str, nvrtc_version()))
    assert list(held.times) == sorted(held.times, reverse=True) and sum(held.times) >= 10
    kept, shown = kept_codes(rung, shown_size(rung)), shown_codes(rung, shown_size(rung))
    assert len({one.ptx for one in kept}) == len(held.times) > 1, "one code alone need not be kept"
    assert sum(shown.values()) == sum(held.times) and list(shown.values()) == sorted(shown.values(), reverse=True)
    assert len({repr(instruction_bytes(one.cubin)) for one in shown}) == len(shown) <= len(kept)
    for one in shown:
        assert not any(line.file.startswith("/") for line in disassemble(one, next(iter(one.names))))


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoundRung:
    """The rung ``tuned`` of sgemm, with its kept code in a folder of its own."""
    path = code_path("sgemm", "tuned")
    copy = tmp_path / "kept.json"
    copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(shown_code, "code_path", lambda *_: copy)
    return load_ladder("sgemm")["tuned"]


def rewritten(**changes: object) -> None:
    path = shown_code.code_path("sgemm", "tuned")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_what_this_process_compiles_changes_nothing_that_a_chapter_shows(tuned, monkeypatch) -> None:
    size = shown_size(tuned)
    first = shown_code.shown_code(tuned, size)
    reads = fma_bank_reads(tuned, size, first)
    another = first.with_code(first.ptx, b"no machine code", first.include_dirs)
    monkeypatch.setattr(BoundRung, "compiled", lambda *_, **__: another)
    assert fma_bank_reads(tuned, size) == reads and reads.instructions
    assert shown_code.shown_code(tuned, size).ptxas_report == first.ptxas_report != ""
    with pytest.raises(ToolchainError):
        fma_bank_reads(tuned, size, another)


def test_other_sizes_and_rungs_and_compilers_show_what_is_compiled_now(tuned, monkeypatch) -> None:
    size, small = shown_size(tuned), {"m": 64, "n": 512, "k": 32}
    compiled = tuned.compiled(size)
    assert shown_codes(tuned, small) == {tuned.compiled(small): 1}
    neighbours = tuned.ladder["neighbours"]
    assert shown_codes(neighbours, size) == {neighbours.compiled(size): 1}
    rewritten(nvrtc="11.8")
    assert shown_codes(tuned, size) == {compiled: 1}


def test_stale_or_missing_code_is_refused(tuned) -> None:
    rewritten(made_from="0" * 64)
    assert not shown_code.is_fresh(tuned)
    with pytest.raises(LookupError, match=r"stale machine code of sgemm tuned.*climb keep-code"):
        shown_code.shown_code(tuned, shown_size(tuned))
    shown_code.code_path("sgemm", "tuned").unlink()
    assert not shown_code.is_fresh(tuned)
    with pytest.raises(LookupError, match="no machine code of sgemm tuned is kept; run: climb keep-code"):
        shown_code.shown_code(tuned, shown_size(tuned))


def test_command_keeps_every_code_and_the_most_frequent_first(tuned, monkeypatch, capsys) -> None:
    one, other = list(kept_codes(tuned, shown_size(tuned)))[:2]
    made = iter([other, one, other])
    monkeypatch.setattr(shown_code, "SHOWN", {("sgemm", "tuned")})
    monkeypatch.setattr(shown_code, "_in_a_process", lambda names, seed: {("sgemm", "tuned"): next(made)})
    assert main(["keep-code", "--processes", "3"]) == 0 and capsys.readouterr().out == ""  # it is fresh
    rewritten(made_from="0" * 64)
    assert main(["keep-code", "--processes", "3"]) == 0
    assert "2 codes, made by 2, 1 processes" in capsys.readouterr().out and shown_code.is_fresh(tuned)
    codes = kept_codes(tuned, shown_size(tuned))
    assert [(code.ptx, times) for code, times in codes.items()] == [(other.ptx, 2), (one.ptx, 1)]
    made = iter([one] * 3)
    assert main(["keep-code", "--more", "sgemm", "--processes", "3"]) == 0
    assert list(kept_codes(tuned, shown_size(tuned)).values()) == [4, 2]
    assert next(iter(shown_codes(tuned, shown_size(tuned)))).ptx == one.ptx
    assert list(shown_codes(tuned, shown_size(tuned)).values()) == [6], "their instructions are the same"
    first, kernel = next(iter(codes)), next(iter(tuned.compiled(shown_size(tuned), whole=False).names))
    assert disassemble(first, kernel) == disassemble(other, kernel) and opcodes(first, kernel, "FFMA")


def test_codes_count_as_one_only_if_every_instruction_is_the_same(tuned, monkeypatch) -> None:
    size = shown_size(tuned)
    first, second, third = list(kept_codes(tuned, size))[:3]
    (code,) = instruction_bytes(second.cubin).values()
    at = second.cubin.index(code) + len(code) // 2
    changed = second.cubin[:at] + bytes([second.cubin[at] ^ 1]) + second.cubin[at + 1 :]
    another = second.with_code(second.ptx, changed, second.include_dirs)
    monkeypatch.setattr(shown_code, "kept_codes", lambda *_: {first: 3, another: 4, third: 2})
    assert shown_codes(tuned, size) == {first: 5, another: 4}
    monkeypatch.setattr(shown_code, "kept_codes", lambda *_: {first: 3, another: 6, third: 2})
    assert list(shown_codes(tuned, size).items()) == [(another, 6), (first, 5)]


def test_a_process_of_its_own_compiles_what_it_is_told() -> None:
    ((name, compiled),) = shown_code._in_a_process([("copy", "scalar")], seed=0).items()
    assert name == ("copy", "scalar") and isinstance(compiled, Compiled)
    rung = load_ladder("copy")["scalar"]
    assert compiled.ptx == rung.compiled(shown_size(rung)).ptx


def test_a_file_of_another_shape_is_refused(tuned) -> None:
    rewritten(colour="red")
    with pytest.raises(records.RecordError, match="unknown field `colour`"):
        shown_code.is_fresh(tuned)
    assert msgspec.json.decode(code_path("sgemm", "tuned").read_bytes(), type=ShownCode)


def test_chapters_that_show_kept_code_read_no_code_of_this_process() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((paths.ROOT / "book").glob("*.ipynb"))]
    kept = [text for text in texts if "shown_code" in text or "fma_bank_reads" in text]
    assert kept and not any(".compiled(" in text for text in kept)
