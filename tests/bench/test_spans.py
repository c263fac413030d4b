"""When launches began and ended: probes in PTX, run on the emulator, and what is made of their times."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from tiny_ladder import scale

from climb import fake_cupy
from climb.bench import probes, spans
from climb.bench.identity import expand_includes
from climb.bench.registry import load_ladder

pytestmark = pytest.mark.emulated


def emulated(rung, ptx, launches, size):
    """A Loader: the rung's kernels on the emulator, with the PTX that is given."""
    found = []
    for launch in launches:
        names = tuple(dict.fromkeys(one.kernel for one in launches))
        module = fake_cupy.RawModule(code=expand_includes(rung.path), options=rung.options, name_expressions=names)
        kernel = module.get_function(launch.kernel)
        kernel._compiled = replace(rung.compiled(size, whole=False), ptx=ptx)
        found.append(kernel)
    return found


#: Rungs of the ladder chain: waits for the launch before, and barriers of a block.
CHAIN = load_ladder("chain")


def test_each_launch_has_its_blocks_waits_and_barriers() -> None:
    measured = spans.run(CHAIN["dependent"], {"steps": 3}, emulated, lambda: None, runs=1)
    launches = measured.launches
    assert [(one.kernel, one.blocks, len(one.barriers)) for one in launches] == [("chain_step", 132, 0)] * 3
    # The emulator's clock grows by 1 us with each reading: at the start, after the wait, at the end.
    assert all(one.began < one.went_on < one.ended for one in launches)
    assert spans.resolution(measured.times) == 1e-6
    start, stays = spans.run(CHAIN["barrier"], {"steps": 3}, emulated, lambda: None, runs=1).launches
    assert (start.kernel, stays.kernel) == ("chain_start", "chain_barrier")
    assert start.went_on is None and len(stays.barriers) == 2  # a barrier of the block for each step but the first


@pytest.mark.thorough
def test_a_launch_that_stays_marks_each_of_its_steps() -> None:
    """One warp of a block starts copies and leaves early; the first thread passes at least one barrier a step."""
    measured = spans.run(
        load_ladder("unet")["output_stationary"], {"batch": 1, "width": 32}, emulated, lambda: None, runs=1
    )
    empties, stays = measured.launches
    assert (empties.kernel, stays.kernel) == ("unet_empty", "unet_output_stationary")
    assert 32 < len(stays.barriers) < probes.MARKS
    times = [stays.began, stays.went_on, *stays.barriers, stays.ended]
    assert stays.barriers == tuple(sorted(stays.barriers)) and max(times) == stays.ended


def test_probes_leave_results_as_they_are_and_a_wrong_one_is_refused(monkeypatch) -> None:
    broken = replace(CHAIN.problem, reference=lambda inputs, size: {"counts": np.full(132, 9, np.int32)})
    rung = replace(CHAIN["stream"], ladder=replace(CHAIN, problem=broken))
    with pytest.raises(ValueError, match="stream with probes is wrong: counts"):
        spans.run(rung, {"steps": 3}, emulated, lambda: None, runs=1)


def test_a_rung_with_inputs_and_scratch_runs_with_probes() -> None:
    measured = spans.run(scale.ladder["twice"], {"n": 100}, emulated, lambda: None, runs=1)
    assert [(one.kernel, one.blocks) for one in measured.launches] == [("doubled", 2), ("plus_one", 2)]


#: When the only block of each run of ``timed`` began and ended, in ns, the one that warms up first.
RUNS = [(9000, 9005), (8000, 8010), (7000, 7050), (6000, 6020), (5000, 5040), (4000, 4030)]


@pytest.fixture
def timed(monkeypatch):
    """A Loader whose kernel computes in Python and takes the times of ``RUNS``, and a log of what happens in a run.

    CUDA events of run n are n ms apart. ``wrong`` is what its results are multiplied by.
    """
    log, left = [], list(RUNS)

    class Event:
        known = False

        def record(self):
            log.append("event")

        def synchronize(self):
            self.known = True

    def elapsed(start, stop):
        assert stop.known, "CuPy raises an error for an event that has not happened"
        return float(len(RUNS) - len(left))

    monkeypatch.setattr(spans.cp.cuda, "Event", Event)
    monkeypatch.setattr(spans.cp.cuda, "get_elapsed_time", elapsed)

    def load(rung, ptx, launches, size, wrong=1.0):
        def kernel(grid, block, args, *, shared_mem=0):
            log.append("launch")
            y, x, _, times = args
            y[:] = spans.cp.asarray((wrong * (2 * spans.cp.asnumpy(x) + 1)).astype(np.float32))
            stored = spans.cp.asnumpy(times)
            stored[0, [probes.BEGAN, probes.ENDED]] = began, ended = left.pop(0)
            if began == RUNS[0][0]:
                stored[0, probes.WENT_ON] = ended
            times[:] = spans.cp.asarray(stored)

        return [kernel]

    return load, log


def test_the_run_of_median_extent_is_kept_without_the_first_and_without_what_earlier_runs_stored(timed) -> None:
    load, log = timed
    measured = spans.run(scale.ladder["plain"], {"n": 64}, load, lambda: log.append("clean"), runs=5)
    assert log == ["clean", "event", "launch", "event"] * 6
    assert (measured.zero, measured.extent, measured.seconds) == (4000, 30, 6e-3)
    (launch,) = measured.launches
    assert (launch.kernel, launch.began, launch.ended, launch.went_on) == ("plain", (0.0, 0.0), (3e-8, 3e-8), None)


@pytest.mark.parametrize(("wrong", "refused"), [(1 + 5e-7, False), (1 + 2e-6, True)])
def test_the_tolerance_is_relative_to_the_largest_result(timed, wrong: float, refused: bool) -> None:
    """Results are about 2000: an absolute difference within the tolerance, 1e-6, would not even be a rounding."""
    inputs = {"x": np.full(64, 1000, np.float32)}
    ladder = replace(scale.ladder, problem=replace(scale.problem, make_inputs=lambda size, rng: inputs))
    with pytest.raises(ValueError, match="plain with probes is wrong: y differs") if refused else nullcontext():
        spans.run(ladder["plain"], {"n": 64}, lambda *given: timed[0](*given, wrong), lambda: None, runs=1)


KERNEL = """
.version 8.8
.target sm_90
.visible .entry two(
	.param .u64 two_param_0
)
.maxntid 128
{
	.local .align 16 .b8 depot[48];
	.reg .pred %p<2>;
	.loc 1 5
	@%p1 ret;
	{
	bar.sync 	0;
	}
	@%p1 bar.sync 	0;
	griddepcontrol.wait;
	ret;
}
.func none() { bar.sync 0; ret; }
.visible .entry empty()
{
	ret;
}
.section .debug_str
{
.b8 1
}
"""


def test_probes_are_put_at_the_start_at_waits_barriers_and_every_return_of_kernels_alone() -> None:
    text = probes.with_probes(KERNEL)
    assert text.count("globaltimer") == 2 + 1 + 1 + 3  # starts, the barrier without a guard, the wait, returns
    assert "@%p1 bra $climb_end0;" in text and "$climb_end0:" in text and "$climb_end1:" not in text
    assert ".func none() { bar.sync 0; ret; }" in text
    assert ".loc 1" not in text and "depot[48]" in text and ".debug_str" not in text
    assert text.count(f".param .u64 {probes.PARAMETER}") == 2 and "two_param_0,\n" in text
    with pytest.raises(ValueError, match="no kernel"):
        probes.with_probes(".version 8.8\n")


def test_spans_are_the_first_and_the_last_block_since_the_run_began() -> None:
    times = np.zeros((2, probes.COLUMNS), np.uint64)
    times[:, probes.BEGAN], times[:, probes.ENDED] = (1000, 1032), (1500, 1400)
    times[1, probes.FIRST_MARK] = 1100
    span = spans.spans_of(times, "stage", zero=936)
    assert (span.began, span.ended) == ((6.4e-8, 9.6e-8), (4.64e-7, 5.64e-7))
    assert (span.went_on, span.barriers, span.blocks) == (None, ((1.64e-7, 1.64e-7),), 2)
    assert spans.resolution([times]) == 3.2e-8
    assert spans.resolution([times[:0], np.array([[0, 141, 1, 41]], np.uint64)]) == 4e-8, "0 is no reading, 1 is one"
    unended = times * (np.arange(probes.COLUMNS) != probes.ENDED).astype(np.uint64)
    for incomplete in (np.zeros_like(times), unended, times - unended):
        with pytest.raises(ValueError, match="no block of stage"):
            spans.spans_of(incomplete, "stage", 0)
    assert spans.spans_of(np.ones_like(times), "stage", 0).began == (1e-9, 1e-9)


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """The record of two rungs of the chain, made as on a GPU, by the emulator."""
    clocks = dict.fromkeys(("sm_mhz", "memory_mhz", "max_sm_mhz", "max_memory_mhz"), 1)
    device = {"name": "A GPU", "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 1, "driver": None}
    device |= {"cuda": "12.9", "nvrtc": "12.9", "cupy": "0", "clocks": clocks}
    monkeypatch.setattr(spans.hardware, "device_block", lambda: device)
    monkeypatch.setattr("climb.bench.cold.CacheCleaner", lambda: lambda: None)
    monkeypatch.setattr(spans, "_loaded", emulated)
    monkeypatch.setattr(spans, "RUNS", 1)
    monkeypatch.setattr(spans, "_HOLD_NS", 3)
    monkeypatch.setattr(spans.cp.cuda, "get_elapsed_time", lambda start, stop: 0.01)
    small = replace(CHAIN, problem=replace(CHAIN.problem, headline=({"steps": 2},)))
    monkeypatch.setattr(spans, "load_ladder", lambda name: small)
    monkeypatch.setattr(spans.records, "RECORDS", tmp_path)
    return small, spans.record_spans("chain", ("stream", "barrier"), tmp_path / "a-gpu")


def test_recorded_spans_are_read_back_and_a_part_replaces_its_own_rungs(recorded) -> None:
    small, path = recorded
    assert path.name == "chain.json" and path.parent.name == "spans"
    found = spans.spans(small, "a-gpu")
    assert found.fresh == ("stream", "barrier") and found["stream"].seconds == 1e-5
    assert [one.kernel for one in found["barrier"].launches] == ["chain_start", "chain_barrier"]
    with pytest.raises(LookupError, match="no spans of graph on A GPU; on that GPU: climb spans chain"):
        found["graph"]
    spans.record_spans("chain", ("graph",), path.parents[1])
    assert spans.spans(small, "a-gpu").fresh == ("stream", "graph", "barrier")


def test_stale_spans_are_not_shown(recorded) -> None:
    small, path = recorded
    path.write_text(path.read_text().replace(small["stream"].sha256({"steps": 2}), "0" * 64))
    found = spans.spans(small, "a-gpu")
    assert found.fresh == ("barrier",)
    with pytest.raises(LookupError, match="stale spans of stream"):
        found["stream"]


def test_no_record_names_the_command(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(spans.records, "RECORDS", tmp_path)
    with pytest.raises(LookupError, match="climb spans chain"):
        spans.spans(CHAIN, "a-gpu")
