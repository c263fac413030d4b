"""The emulator's counts equal those that Nsight Compute took on a GPU, or the machine code gives the reason."""

from __future__ import annotations

import dataclasses
import html
import re
import warnings
from types import SimpleNamespace

import pytest
from tools.code import memory_instructions
from tools.pending import TO_COUNT
from tools.thorough import first_of_each, sparse, thorough

from climb import ladder_names, load_ladder
from climb.bench.identity import expand_includes
from climb.bench.ladder import BoundRung
from climb.bench.records import pending
from climb.emulator import load
from climb.toolchain import compile_cuda, disassemble
from climb.validation import agreement, nsight
from climb.validation.agreement import Count, code, compare_patterns, compare_rung, record, summary
from climb.validation.agreement.cases import cases
from climb.validation.agreement.measuring import STEPS, dump
from climb.validation.agreement.summary import agreement_table, differences_table, reasons_table

#: Rungs that were measured, of those that the ladders still have.
#: What was counted, but for rungs whose kernel has changed since: these wait by name.
MEASURED = {(one["ladder"], one["rung"]) for one in record().rungs if f"{one['ladder']} {one['rung']}" not in TO_COUNT}
RUNGS = [rung for rung in agreement.all_rungs() if (rung.ladder.name, rung.name) in MEASURED]
#: Of every second chapter `make test` compares the last rung that takes less than a second.
SLOW = {"unet", "unet_f16", "occupancy_fma", "fft_crossover", "sgemm stream_k"}
CHAPTERS = sorted({rung.ladder.folder.parent for rung in RUNGS})[::2]
QUICK = [
    rung
    for rung in reversed(RUNGS)
    if rung.ladder.folder.parent in CHAPTERS and not {rung.ladder.name, f"{rung.ladder.name} {rung.name}"} & SLOW
]

needs_the_compiler = pytest.mark.skipif(
    not agreement.same_compiler(), reason="the counts belong to another version of NVRTC"
)


@pytest.fixture(scope="module")
def patterns() -> tuple[Count, ...]:
    return compare_patterns()


@needs_the_compiler
def test_every_pattern_is_counted_exactly(patterns) -> None:
    """Except sums of floats and of 64-bit integers in shared memory, for which ptxas makes a loop."""
    assert len(record().patterns) >= 900
    different = [one for one in patterns if not one.equal]
    assert [one for one in different if not (one.compiler and one.why)] == []
    assert {one.what.rsplit(",", 1)[0].split(", ")[0] for one in different} == {"shared add"}
    assert not any(", int," in one.what for one in different)
    kinds = {one.kind for one in patterns if one.equal and one.emulator}
    assert len(kinds) >= 8 and {"local load", "shared atomic", "global atomic", "shared store"} <= kinds


@needs_the_compiler
def test_patterns_cover_every_width_and_many_costs(patterns) -> None:
    """The patterns include every width, and requests that cost from one sector to 32."""
    moves = [one for one in patterns if "by copy" not in one.what]
    loads = [one for one in moves if (one.kind, one.quantity) == ("global load", "sectors")]
    assert {one.what.split(",")[1].strip() for one in loads} == {f"{n} bytes" for n in (1, 2, 4, 8, 16)}
    assert len({one.emulator for one in loads}) >= 10


@pytest.fixture(scope="module")
def compared() -> dict[str, tuple[Count, ...]]:
    """The counts compared so far, for the summary."""
    return {}


@needs_the_compiler
@pytest.mark.parametrize(
    "rung",
    [
        *first_of_each(QUICK, lambda rung: rung.ladder.folder.parent),
        *(thorough(rung) for rung in RUNGS if rung not in QUICK),
    ],
    ids=lambda rung: f"{rung.ladder.name}-{rung.name}",
)
def test_every_rung_is_counted_exactly_or_marked(rung: BoundRung, compared) -> None:
    counts = compared[f"{rung.ladder.name} {rung.name}"] = compare_rung(rung)
    assert any(one.emulator for one in counts)
    assert [one for one in counts if not one.equal and not (one.compiler and one.why)] == []


@needs_the_compiler
def test_code_that_this_process_makes_in_another_order_is_compiled_by_itself(monkeypatch) -> None:
    rung = load_ladder("saxpy")["scalar"]
    compiled, counts = rung.compiled(agreement.measured_size(rung)), compare_rung(rung)
    another = compiled.with_code(compiled.ptx.replace("ret;", "nop.order;\n\tret;"), b"", compiled.include_dirs)
    monkeypatch.setattr(agreement, "counted_code", lambda *_: another)
    assert compare_rung(rung) == counts
    monkeypatch.setattr(agreement, "compiled_alone", lambda *_: another)
    with pytest.raises(agreement.StaleCounts, match="stale counts of saxpy scalar"):
        compare_rung(rung)


def test_every_rung_is_counted_or_pending() -> None:
    """A rung whose times no record holds waits for a GPU; it is listed, and its counts are not asked for."""
    every = {(rung.ladder.name, rung.name) for rung in agreement.all_rungs()}
    waiting = {(ladder, rung) for ladder in ladder_names() for rung in pending(ladder)}
    for ladder, rung in sorted(every & waiting - MEASURED):
        warnings.warn(f"pending: {ladder} {rung} was not counted on a GPU yet", stacklevel=1)
    uncounted = sorted(f"{ladder} {rung}" for ladder, rung in every - MEASURED - waiting)
    assert every >= code.NONDETERMINISTIC and summary.read_summary().missing == uncounted
    named = {name if name in TO_COUNT else name.split()[0] for name in uncounted}
    assert named <= TO_COUNT
    not_even_timed = {name for name in TO_COUNT - named if name.split()[0] in {ladder for ladder, _ in waiting}}
    assert named | not_even_timed == TO_COUNT, "what has been counted is no longer in the set"


@needs_the_compiler
@pytest.mark.parametrize("name", sparse(sorted(code.NONDETERMINISTIC), every=9), ids="-".join)
def test_kept_code_was_made_from_todays_source(name: tuple[str, str], monkeypatch) -> None:
    rung = load_ladder(name[0])[name[1]]
    size = agreement.measured_size(rung)
    fresh = rung.compiled(size)
    monkeypatch.setattr(BoundRung, "compiled", lambda *_, **__: fresh)  # not once more, for the PTX alone
    kept = code.counted_code(rung, size)
    # The kernels are today's; those that have been renamed since are called by their older names in the kept code.
    assert list(kept.names) == list(fresh.names) and set(kept.names.values()) <= set(kept.kernels)
    assert len(kept.kernels) == len(fresh.kernels)
    ours, theirs = memory_instructions(kept)
    assert ours and ours == theirs
    # The line table was made on another machine, and holds no directory of that machine.
    for kernel in kept.kernels:
        assert not any(one.file.startswith(("/", "\\")) or ":" in one.file for one in disassemble(kept, kernel))
    assert not re.search(rb"(?<![\w./])/(?:home|root|tmp|work|Users)/", kept.cubin)


def test_kept_code_of_another_source_is_refused(tmp_path, monkeypatch) -> None:
    rung = load_ladder("classifier")["split_k_per_warp"]
    size = agreement.measured_size(rung)
    monkeypatch.setattr(code, "code_path", lambda *_: tmp_path / "code" / "it.json")
    with pytest.raises(LookupError, match="no code of classifier split_k_per_warp"):
        code.counted_code(rung, size)
    compiled = rung.compiled(size)
    code.keep_code(tmp_path / "code" / "it.json", compiled, "int another;")
    with pytest.raises(LookupError, match=r"stale counts of classifier split_k_per_warp.*climb agreement"):
        compare_rung(rung)
    code.keep_code(tmp_path / "code" / "it.json", compiled, expand_includes(rung.path))
    kept = code.counted_code(rung, size)
    assert kept.ptx == compiled.ptx and len(kept.cubin) == len(compiled.cubin)
    kernel = kept.kernels[0]
    assert disassemble(kept, kernel) == disassemble(compiled, kernel)


@pytest.mark.thorough
@needs_the_compiler
def test_committed_summary_equals_a_new_comparison(patterns, compared, monkeypatch) -> None:
    """The chapter's tables. If this fails, run `climb agreement --compare`."""

    def once(rung: BoundRung) -> tuple[Count, ...]:
        return compared.get(f"{rung.ladder.name} {rung.name}") or compare_rung(rung)

    monkeypatch.setattr(summary, "compare_rung", once)
    monkeypatch.setattr(summary, "compare_patterns", lambda: patterns)
    assert summary.summarise() == summary.read_summary()


def test_difference_tables_show_every_difference() -> None:
    found = summary.read_summary()
    shown = differences_table()._repr_html_()
    for one in found.different:
        assert one["what"] in shown
        assert html.escape(one["why"])[1:] in shown
    patterns = [one for one in found.different if one["what"].startswith("shared add")]
    assert found.compared("patterns") - found.equal("patterns") == len(patterns)
    counted = {row.split("  ")[0]: row.split()[-4:] for row in repr(agreement_table()).splitlines()[2:]}
    for column, which in ((0, "patterns"), (2, "rungs")):
        shown = {
            name: [int(n) for n in row[column : column + 2]]
            for name, row in counted.items()
            if name in found.sums[which]
        }
        assert shown == found.sums[which]
    reasons = repr(reasons_table()).splitlines()[2:]
    assert sum(int(row.split()[-1]) for row in reasons) == len(found.different)
    assert {row.rsplit(maxsplit=2)[0].strip() for row in reasons} == {one["why"] for one in found.different}


def test_wrong_count_is_a_difference_without_a_reason(monkeypatch) -> None:
    """A record with one sector more, on a line without a mark, is a difference without a reason."""
    rung = load_ladder("transpose")["naive"]
    wrong = []
    for point in record().rungs:
        runs = [dict(run) for run in point["counts"]]
        for run in runs:
            run["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] += 1
        wrong.append({**point, "counts": runs})
    changed = dataclasses.replace(record(), rungs=wrong)
    monkeypatch.setattr(agreement, "record", lambda gpu=None: changed)
    different = [one for one in compare_rung(rung) if not one.equal]
    assert [(one.kind, one.quantity, one.why) for one in different] == [("global store", "sectors", "")]


def test_counts_of_a_changed_kernel_are_refused(monkeypatch) -> None:
    stale = [{**point, "code_sha256": "0" * 64} for point in record().rungs]
    monkeypatch.setattr(agreement, "record", lambda gpu=None: dataclasses.replace(record.__wrapped__(), rungs=stale))
    with pytest.raises(LookupError, match=r"stale counts of copy scalar.*climb agreement"):
        compare_rung(load_ladder("copy")["scalar"])


def test_comments_and_names_make_no_counts_stale_and_code_does() -> None:
    text = (
        ".visible .entry k(\n.param .u64 k_param_0)\n{\n\t.loc\t1 4 0\n\tmov.u64 %rd1, _ZZ1kE4tile;\n"
        "\tst [_ZZ1kE3sum];\n\tld %r1, [k_param_0];\n\tret;\n$L__tmp0:\n}\n"
    )
    nameless = agreement.nameless_ptx
    assert nameless(text, "k") == nameless(text.replace("1 4 0", "1 9 0"), "k")
    renamed = text.replace("entry k(", "entry kk(").replace("k_param", "kk_param").replace("_ZZ1kE", "_ZZ2kkE")
    assert nameless(renamed, "kk") == nameless(text, "k")
    for old, new in (("ret", "exit"), ("_ZZ1kE3sum", "_ZZ1kE4tile"), ("k_param_0]", "k_param_1]")):
        assert nameless(text.replace(old, new), "k") != nameless(text, "k")


def test_case_labels_are_unique() -> None:
    labels = [case.label for case in cases()]
    assert len(labels) == len(set(labels))
    assert {point["label"] for point in record().patterns} <= set(labels)


def test_page_of_ncu_is_parsed_and_a_missing_metric_is_an_error() -> None:
    heads = ",".join(f'"{name}"' for name in ("ID", *agreement.METRICS))
    page = f'==PROF== x\n{heads}\n"",{",".join(["inst"] * 3)}\n"0",' + ",".join(['"1,024"'] * len(agreement.METRICS))
    (row,) = nsight.parse(page, agreement.METRICS)
    assert row == dict.fromkeys(agreement.METRICS, 1024)
    with pytest.raises(KeyError, match="smsp__inst_executed"):
        nsight.parse(page.replace("smsp__inst_executed.sum", "another"), agreement.METRICS)


@pytest.mark.parametrize("ladder", ["transpose", "histogram", "classifier"])
def test_launches_on_a_gpu_have_the_code_that_is_compared(ladder: str) -> None:
    steps = list(STEPS["rungs"](ladder))
    code = {(s.names["ladder"], s.names["rung"], s.names["launch"]): s.code for s in steps}
    assert len(code) == len(steps)
    measured = [point for point in record().rungs if point["ladder"] == ladder]
    assert len(measured) == len(steps)
    for point in measured:
        assert code[ladder, point["rung"], point["launch"]] == point["code_sha256"]


def test_record_has_one_launch_per_line() -> None:
    text = dump({"date": "today", "rungs": [{"a": 1}, {"a": 2}], "patterns": [{"b": 3}]})
    assert '  {"a": 1},\n  {"a": 2}\n' in text


@needs_the_compiler
def test_loads_that_wait_for_another_block_are_the_reason_of_their_count() -> None:
    for rung, waits in (("barrier", True), ("handed_over", True), ("stream", False)):
        loads = [one for one in compare_rung(load_ladder("chain")[rung]) if one.kind == "global load" and one.emulator]
        assert loads and any(not one.equal and one.why == agreement.POLLED for one in loads) is waits, rung


@pytest.mark.parametrize(
    ("body", "polls"),
    [
        ("while (*static_cast<volatile int*>(flag) == 0) {}", True),
        ("out[0] = *static_cast<volatile int*>(flag);", False),
        ("while (out[threadIdx.x] < 9) out[threadIdx.x] += flag[0];", False),
    ],
)
def test_a_poll_is_a_load_in_a_loop_of_what_another_thread_writes(body: str, polls: bool) -> None:
    compiled = compile_cuda(
        f'extern "C" __global__ void kernel(int* flag, int* out) {{ {body} }}', filename="kernel.cu"
    )
    sites = load(compiled.ptx).kernel("kernel").code.sites
    assert any(map(agreement._is_poll, sites)) is polls


def test_conflicts_within_the_excess_of_the_pipe_are_hidden() -> None:
    def said(conflicts: int) -> str:
        excess = {"asked_ld": 100, "pipe_ld": 130, "conflicts_ld": conflicts}
        names = {"asked_ld": agreement._ASKED, "pipe_ld": agreement._PIPE, "conflicts_ld": agreement._CONFLICTS}
        run = {names[key].format("ld"): count for key, count in excess.items()} | {agreement._ASKED.format("ldsm"): 0}
        found = agreement.counts("it", emulated, [run], lambda: [agreement.Reason("shared load", "another")])
        return next(one.why for one in found if one.quantity == "bank_conflicts")

    total = SimpleNamespace(requests=10, wavefronts=100, bank_conflicts=8)
    emulated = SimpleNamespace(total=lambda kind: total)
    assert said(20) == said(37) == agreement.HIDDEN  # 8 lies between 37 - 30 and 37
    assert said(38) == ""  # 8 are left
    assert said(39) == "another"  # at least 9 are left
    assert said(7) == "another"
