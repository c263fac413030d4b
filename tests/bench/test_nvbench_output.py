"""NVBench's folder is read on from where the benchmark before has ended."""

from __future__ import annotations

from pathlib import Path

from climb.bench.nvbench_output import NvbenchOutput


def test_lines_of_a_benchmark_that_runs_again_are_those_of_its_last_run(tmp_path):
    log, output = tmp_path / "nvbench.log", NvbenchOutput(tmp_path)
    log.write_text("Run:  [1/1] point-1 [Device=0]\nPass: first\n")
    assert output.end("point-1") == (None, None, ["Run:  [1/1] point-1 [Device=0]", "Pass: first"])
    with log.open("a") as file:
        file.write("Run:  [1/1] point-1 [Device=0]\nPass: second\n")
    assert output.end("point-1")[2] == ["Run:  [1/1] point-1 [Device=0]", "Pass: second"]
    assert output.end("point-1")[2] == []


def test_a_line_that_is_not_whole_yet_is_read_again_with_the_next_benchmark(tmp_path):
    log, output = tmp_path / "nvbench.log", NvbenchOutput(tmp_path)
    log.write_text("Run:  [1/1] point-1 [Device=0]\nRun:  [1/1] poi")
    output.end("point-1")
    with log.open("a") as file:
        file.write("nt-2 [Device=0]\nPass: whole\n")
    assert output.end("point-2")[2] == ["Run:  [1/1] point-2 [Device=0]", "Pass: whole"]


def test_files_are_taken_in_the_order_in_which_they_are_written(tmp_path):
    """Files that a failed benchmark has left are skipped when the next one begins."""
    folders, output = (tmp_path / "nvbench.json-bin", tmp_path / "nvbench.json-freqs-bin"), NvbenchOutput(tmp_path)
    (tmp_path / "nvbench.log").write_text("")

    def write(folder: Path) -> Path:
        new = folder / f"{len(list(folder.iterdir()))}.bin"
        new.touch()
        return new

    for folder in folders:
        folder.mkdir()
    for number, left in enumerate((0, 2, 1)):
        for _ in range(left):
            for folder in folders:
                write(folder)
        output.begin()
        samples, clocks = map(write, folders)
        assert output.end("point")[:2] == (samples, clocks), number
    output.begin()
    assert output.end("point")[:2] == (None, None)
