"""The process that measures: ``python -m climb.bench.bench_child SPEC.json OUT``.

NVBench runs its benchmarks once per process, so each run of ``measure`` starts a new one. Each regime of a target is
one benchmark. A target is verified at its own size on NVBench's stream before its first regime is sampled. A rung with
a wrong result stops the rest of its ladder; a peer with one is skipped, and its record says why.

A finished target is saved at once (``climb.bench.records.parts``), so that it is not lost if the process is killed. The
process ends when its parent ends, or when a fault has left it without a GPU.

``OUT`` receives ``nvbench.json`` (with the raw samples in ``nvbench.json-bin/``), ``nvbench.log``, ``points.jsonl``
(each target as soon as it is settled: its verification, its error, or why it is skipped) and ``device.json``. Progress
goes to stderr, one line per point and regime. The last line of a point shows how its time was spent.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from climb.bench import hardware, measure, nvbench_results, roofline
from climb.bench.cases_ahead import CasesAhead, workers_here
from climb.bench.checking import Case, run_and_check
from climb.bench.libraries import description, prepared
from climb.bench.measure import Sampling, Target
from climb.bench.measuring_gpu import Gpu
from climb.bench.measuring_process import LOST_GPU
from climb.bench.nvbench_output import NvbenchOutput
from climb.bench.nvbench_results import Measured
from climb.bench.phases import Phases
from climb.bench.problem import PeerUnavailable, RungUnavailable
from climb.bench.processes import end_with_parent
from climb.bench.progress import say
from climb.bench.records import parts
from climb.bench.registry import load_ladder
from climb.bench.repeating import check_again

_WORTH_SAYING_S = 10
#: A relative standard deviation that any samples meet.
ANY_NOISE = 1e6


class Run:
    """The state of a run: the targets, their results so far, and the case on the device."""

    def __init__(self, spec: dict[str, Any], out: Path, gpu: Gpu):
        self.targets = [Target(**t) for t in spec["targets"]]
        self.sampling = Sampling(**spec["sampling"])
        self.seed = spec["seed"]
        self.out = out
        self.gpu = gpu
        self.results: list[dict[str, Any] | None] = [None] * len(self.targets)
        self.ceilings: dict[str, float] = spec["ceilings"]
        self.failed: set[str] = set()
        self.parts = {ladder: Path(path) for ladder, path in spec.get("parts", {}).items()}
        self.started: str = spec.get("started", "")
        self.phases = Phases()
        cases = ((target.ladder, target.size) for target in self.targets)
        self.ahead = CasesAhead([case for case, _ in groupby(cases)], self.seed, workers_here())
        self._output = NvbenchOutput(out)
        self._begun = time.monotonic()
        self._regimes: dict[str, tuple[Measured, int]] = {}
        self._case: tuple[tuple[str, str], Case] | None = None
        self._launch: Callable[[], None] | None = None
        self._clean: Callable[[], None] | None = None

    def benchmark(self, index: int, regime: str) -> Callable[[Any], None]:
        """The function that NVBench calls with a State for the target of this index in one of its regimes."""

        def measure_point(state: Any) -> None:
            ladder = self.targets[index].ladder
            if ladder in self.failed:
                state.skip("an earlier point failed")
                return
            try:
                self._measure(index, regime, state)
            except (PeerUnavailable, RungUnavailable) as reason:
                self._settle(index, {"skipped": str(reason)})
                state.skip("unavailable on this machine")
            except BaseException as error:
                if self.gpu.is_too_small(error):
                    self._case = self._launch = None
                    self._settle(index, {"skipped": f"this GPU has no room for it: {error}"})
                    state.skip("no room on this machine")
                    return
                # NVBench would turn the exception into a skipped state: keep it, and stop the rest of the ladder.
                self.failed.add(ladder)
                self._settle(index, {"error": f"{type(error).__name__}: {error}"})
                traceback.print_exc()
                state.skip("failed")
                if self.gpu.is_lost():
                    sys.stderr.flush()
                    os._exit(LOST_GPU)  # nothing more can be measured in this process

        return measure_point

    def _settle(self, index: int, result: dict[str, Any]) -> None:
        """Store a target's result and write it to disk at once, in case the process dies."""
        self.results[index] = result
        with (self.out / "points.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps([index, result]) + "\n")

    def _measure(self, index: int, regime: str, state: Any) -> None:
        stream = state.get_stream().addressof()
        if regime == self.targets[index].regimes[0]:
            self._prepare(index, stream)
        result, launch = self.results[index], self._launch
        if result is not None and (reason := result.get("skipped")):
            raise PeerUnavailable(reason)
        assert result is not None and launch is not None
        clean = self._cleaner() if regime == "cold" else None

        def sample(_: Any) -> None:
            if clean is not None:
                clean()  # NVBench has flushed, and holds its stream back until we return
            launch()

        with self.gpu.stream(stream):
            launch()  # a library may allocate memory for a stream when it first sees it
            self.gpu.synchronize()
            state.set_min_samples(result["min_samples"] if regime != "batch" else self.sampling.few_samples)
            state.set_timeout(result["timeout_s"])
            state.set_batch_target_time(self.sampling.batch_seconds)
            state.set_throttle_threshold(self.sampling.throttle_threshold)
            self._output.begin()
            with self.phases("sample"), self.ahead.paused():
                state.exec(sample, batched=regime == "batch")
                self.gpu.synchronize()
        if state.is_skipped():
            raise RuntimeError(f"NVBench skipped it: {state.get_skip_reason()}")
        ctypes.CDLL(None).fflush(None)
        samples, clocks, lines = self._output.end(measure.benchmark_name(index, regime))
        if regime == self.targets[index].regimes[-1]:
            self._settle(index, result)
        self._report(index, regime, samples, lines)
        self._keep(index, regime, samples, clocks, lines)

    def _prepare(self, index: int, stream: int) -> None:
        """Verify the target on NVBench's stream, and keep its launch for all of its regimes."""
        target = self.targets[index]
        ladder = load_ladder(target.ladder)
        rung = target.kind == "rung"
        candidate = ladder[target.name] if rung else measure.find_peer(ladder, target.name)
        self._launch = None
        self.phases.next_point()
        with self.phases("case"):
            case = self._make_case(target)
        # Arrays belong to the default stream's memory pool, which outlives NVBench's streams.
        arrays = {name: self.gpu.aligned(array) for name, array in case.arrays().items()}
        with self.phases("prepare"):
            launch = candidate.prepare(arrays, target.size) if rung else prepared(candidate, arrays, target.size)
            self.gpu.synchronize()
        with self.gpu.stream(stream):
            with self.phases("check"):
                try:
                    verification = run_and_check(case, candidate, arrays, launch, componentwise=True)
                    self.gpu.synchronize()
                except Exception as error:
                    if rung or self.gpu.is_lost():
                        raise
                    raise PeerUnavailable(f"it fails its check: {type(error).__name__}: {error}") from error
            estimate = self.gpu.seconds(launch)
            if estimate <= self.sampling.crawling_s:
                estimate = min(estimate, self.gpu.seconds(launch), self.gpu.seconds(launch))
            if rung:
                with self.phases("check again"):
                    times = self.gpu.launches_to_check(estimate)
                    check_again(case, target.name, verification.tolerance, arrays, launch, times)
            with self.phases("trace"):
                library = None if rung else description(candidate, launch, self.gpu.kernels(launch))
        self._launch = launch
        self.results[index] = {
            "max_rel_error": verification.max_rel_error,
            "max_component_error": verification.max_component_error,
            "library": library,
            "estimate_s": estimate,
            "min_samples": self.sampling.samples_for(estimate),
            "timeout_s": self.sampling.timeout_for(estimate),
        }

    def _cleaner(self) -> Callable[[], None]:
        self._clean = self._clean or self.gpu.cleaner()
        return self._clean

    def _make_case(self, target: Target) -> Case:
        key = (target.ladder, json.dumps(target.size))
        if self._case is None or self._case[0] != key:
            self._case = None
            self.gpu.release()
            ahead = self.ahead.take(target.ladder, target.size)
            self._case = (key, Case.make(load_ladder(target.ladder), target.size, self.seed, ahead=ahead))
        return self._case[1]

    def _keep(self, index: int, regime: str, samples: Path | None, clocks: Path | None, lines: list[str]) -> None:
        """Add the target to its ladder's part once its last regime is measured.

        NVBench writes its JSON at the very end, so this reads the files written so far. If a target cannot be kept,
        that is reported, and the target is measured all the same.
        """
        target, result = self.targets[index], self.results[index]
        part = self.parts.get(target.ladder)
        if part is None or result is None:
            return
        try:
            if samples is None:
                raise nvbench_results.ResultsError(measure.benchmark_name(index, regime), "no file of samples")
            found = nvbench_results.finished(samples, clocks, lines)
            if regime == target.regimes[0]:
                self._regimes = {}
            self._regimes[regime] = found, nvbench_results.throttled_samples(lines)
            if regime == target.regimes[-1]:
                measured = {name: one for name, (one, _) in self._regimes.items()}
                throttled = {name: count for name, (_, count) in self._regimes.items()}
                points = measure.make_points(target, result, measured, throttled, self.sampling)
                parts.append(part, parts.Finished(self.started, points))
        except Exception as error:  # the measurement itself is complete, and NVBench's JSON will hold it
            say(f"{target}: not kept in {part.name}: {type(error).__name__}: {error}")

    def _report(self, index: int, regime: str, written: Path | None, lines: list[str]) -> None:
        """Print one line per regime. NVBench reports at the end, so this reads its files as they appear."""
        if regime == "batch":
            self._say(index, regime, nvbench_results.batch_mean_s(lines), "mean")
            return
        samples = nvbench_results.read_samples(written) if written else ()
        median = statistics.median(samples) if samples else None
        throttled = nvbench_results.throttled_samples(lines)
        extra = f"{len(samples)} samples" + (f", {throttled} throttled and discarded" if throttled else "")
        self._say(index, regime, median, extra)

    def _say(self, index: int, regime: str, seconds: float | None, extra: str) -> None:
        target = self.targets[index]
        said = "time not read yet" if seconds is None else f"{seconds * 1e6:12.2f} us"
        share = ""
        if seconds and regime == "cold":  # the limit is that of a cold start
            with contextlib.suppress(roofline.MissingCeiling):
                least = roofline.limit_s(load_ladder(target.ladder).problem, target.size, self.ceilings)
                share = f"{100 * least / seconds:4.0f} % of the limit"
        line = f"[{index + 1}/{len(self.targets)}] {target!s:<56} {regime:<5} {said} {share:<21} {extra}"
        elapsed = time.monotonic() - self._begun
        left = elapsed / (index + 1) * (len(self.targets) - index - 1)
        if regime == target.regimes[-1]:
            line += f"; {self.phases.point()}"
            if left > _WORTH_SAYING_S:
                line += f", about {left:.0f} s left"
        say(line)


def main(spec_path: Path, out: Path, gpu: Gpu | None = None) -> int:
    """Measure the targets of the spec. Returns the exit status: 0 if every target was verified and measured."""
    spec = json.loads(spec_path.read_text(encoding="utf-8"))
    run = Run(spec, out, gpu or Gpu())
    try:
        with _stdout_to(out / "nvbench.log"):
            _run_nvbench(run, out)
        if not run.failed.issuperset(target.ladder for target in run.targets):
            device = hardware.device_block()
            (out / "device.json").write_text(json.dumps(device), encoding="utf-8")
    finally:
        run.ahead.close()
        say(f"{len(run.targets)} points: {run.phases.total()}")
    return 1 if run.failed or None in run.results else 0


def _run_nvbench(run: Run, out: Path) -> None:
    import cuda.bench as bench

    for index, regime in ((i, regime) for i, target in enumerate(run.targets) for regime in target.regimes):
        benchmark = bench.register(run.benchmark(index, regime))
        benchmark.set_name(measure.benchmark_name(index, regime))
        benchmark.set_stopping_criterion("stdrel")
        # Before a batch NVBench also takes cold samples. They are not recorded, so a few are enough.
        noise = run.sampling.max_noise if regime != "batch" else ANY_NOISE
        benchmark.set_criterion_param_float64("max-noise", noise)
        # Each point sets its number of samples from its own duration; accumulated time must not add to it.
        benchmark.set_criterion_param_float64("min-time", 1e-6)
    bench.run_all_benchmarks(["bench_child", "--devices", "0", "--jsonbin", str(out / "nvbench.json")])


@contextlib.contextmanager
def _stdout_to(path: Path) -> Iterator[None]:
    """Send file descriptor 1 to a file: NVBench prints its log from C++."""
    sys.stdout.flush()
    saved = os.dup(1)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.dup2(log, 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(saved, 1)
        os.close(saved)
        os.close(log)


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
