"""Read NVBench's output for a benchmark that has just ended; its JSON appears only at the very end of a run.

A run may have thousands of benchmarks. Reading therefore continues where the previous benchmark's log ended, and no
folder is listed.
"""

from __future__ import annotations

from pathlib import Path

from climb.bench.nvbench_results import log_lines


class NvbenchOutput:
    """The log and the numbered binary files in NVBench's folder: samples, and the SM clocks of the same benchmark."""

    def __init__(self, out: Path):
        self._log = out / "nvbench.log"
        self._read = 0
        self._samples = _Numbered(out / "nvbench.json-bin")
        self._clocks = _Numbered(out / "nvbench.json-freqs-bin")

    def begin(self) -> None:
        """Skip the files that a failing benchmark may have left."""
        self._samples.new()
        self._clocks.new()

    def end(self, benchmark: str) -> tuple[Path | None, Path | None, list[str]]:
        """Return the benchmark's file of samples, its file of clocks, and its lines of the log; None for a missing
        file."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        # An incomplete line is read with the next benchmark, which does not need it.
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        lines = log_lines(text.decode("utf-8", errors="replace"))
        return self._samples.new(), self._clocks.new(), lines.get(benchmark, [])


class _Numbered:
    """Files named 0.bin, 1.bin and so on, in the order in which they are written."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._count = 0

    def new(self) -> Path | None:
        """Return the first file that is new since the last call, or None."""
        first = self._folder / f"{self._count}.bin"
        while (self._folder / f"{self._count}.bin").exists():
            self._count += 1
        return first if first.exists() else None
