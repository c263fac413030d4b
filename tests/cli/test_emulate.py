"""``climb emulate``: what goes in and out, its exit statuses, its JSON, its page, and what it says about bad input."""

from __future__ import annotations

import json
import os
import re
import threading
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from climb.cli import emulate, main
from climb.cli.emulation import statuses
from climb.emulator import EmulatorError, errors

#: One file for all tests, so that it compiles once. With main, as nvcc compiles it.
SOURCE = """#include <cstdio>
#include <vector>
#include <cuda_runtime.h>
#ifndef SCALE
#define SCALE 2
#endif
__constant__ float shift[2];

__global__ void scale(int n, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = SCALE * x[i] + shift[0];
}
__global__ void race(int n, const float* x, float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void strided(int n, const float* x, float* y) {
    __shared__ float s[1024];
    s[threadIdx.x * 32] = x[threadIdx.x * n];
    if (threadIdx.x < 8) y[threadIdx.x] = s[threadIdx.x * 32];
    if (n == 77) asm("trap;");
}

static void check(cudaError_t status) { if (status != cudaSuccess) exit(1); }

int main() {
    std::vector<float> host(64);
    float *x, *y;
    check(cudaMalloc(&x, 256)); check(cudaMalloc(&y, 256));
    scale<<<1, 64>>>(64, x, y);  // not "device" code }
    printf("{done\\n");
}
"""
SCALE = ["--kernel", "scale", "--grid", "1", "--block", "64"]
ARRAYS = ["--arg", "x:float32:64:range", "--arg", "y:float32:64"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "my kernels.cu").write_bytes(SOURCE.replace("\n", "\r\n").encode())
    return "my kernels.cu"


def test_arrays_come_from_files_and_go_to_files(file: str) -> None:
    x = np.arange(64, dtype=np.float32)
    np.save("x.npy", x)
    np.savez("both.npz", y=np.zeros(64, np.float32), shift=np.array([3, 0], np.float32), z=x)
    given = ["--arg", "63", "--arg", "x:@x.npy", "--arg", "y:@both.npz", "--constant", "shift:@both.npz"]
    assert main(["emulate", file, *SCALE, *given, "--out", "y:y.npy", "--out", "x:o.npz", "--out", "y:o.npz"]) == 0
    assert (np.load("y.npy") == 2 * x + 3).all()
    with np.load("o.npz") as held:
        assert sorted(held.files) == ["x", "y"] and (held["y"] == 2 * x + 3).all()
    given = ["--arg", "63", "--arg", "x:@both.npz[z]", "--arg", "y:float32:64"]
    assert main(["emulate", file, *SCALE, *given, "-D", "SCALE=5", "--out", "y:y.npy"]) == 0
    assert (np.load("y.npy") == 5 * x).all()


def test_host_code_is_left_out_and_named(file: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["emulate", file, *SCALE, "--arg", "63", *ARRAYS]) == 0
    assert capsys.readouterr().err == (
        "climb emulate: left out host code: <cstdio> (line 1), <vector> (line 2), <cuda_runtime.h> (line 3), "
        "check (line 25), main (lines 27-33)\n"
    )


def test_headers_of_the_host_have_their_device_forms(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "types.cu"
    path.write_text(
        "#include <stdio.h>\n#include <cstdint>\n#include <limits.h>\n#include <float.h>\n"
        "__global__ void k(uint32_t* x) { x[0] = INT_MAX; x[1] = FLT_MAX > 1; }\n"
    )
    assert main(["emulate", str(path), "--grid", "1", "--block", "1", "--arg", "x:uint32:2"]) == 0
    shown = capsys.readouterr()
    assert "x (uint32, 2): 2147483647 1" in shown.out
    assert shown.err == "climb emulate: left out host code: <stdio.h> (line 1), <float.h> (line 4)\n"


def document(capsys: pytest.CaptureFixture, *argv: str) -> tuple[int, dict]:
    status = main(["emulate", *argv, "--json", "-"])
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == status
    return status, found


def test_json_holds_the_counters_of_each_line(file: str, capsys: pytest.CaptureFixture) -> None:
    given = ["--kernel", "strided", "--grid", "1", "--block", "32", "--arg", "32", "--arg", "x:float32:1024:ones"]
    status, found = document(capsys, file, *given, "--arg", "y:float32:8")
    assert status == 0 and found["fault"] is None and found["kernel"] == "strided" and found["grid"] == [1, 1, 1]
    loads = {one["kind"]: one for one in found["accesses"] if one["line"] == 20}
    assert loads["global load"]["sectors"] == 32 and loads["global load"]["ideal_sectors"] == 4
    assert loads["shared store"]["bank_conflicts"] == 31
    (last,) = (one for one in found["executed"] if one["line"] == 21 and one["lane_efficiency"] < 1)
    assert last["thread_instructions"] < 32 * last["warp_instructions"]
    assert found["totals"]["warp_instructions"] == sum(one["warp_instructions"] for one in found["executed"])
    assert found["arrays"] == {
        "x": {"dtype": "float32", "shape": [1024]},
        "y": {"dtype": "float32", "shape": [8]},
    }


def test_json_holds_both_places_of_a_race(file: str, capsys: pytest.CaptureFixture) -> None:
    status, found = document(capsys, file, "--kernel", "race", "--grid", "1", "--block", "64", "--arg", "1", *ARRAYS)
    assert status == 4 and found["fault"]["kind"] == "Race"
    assert (found["fault"]["place"]["line"], found["fault"]["other"]["line"]) == (16, 15)
    assert found["fault"]["place"]["kernel"] == "race" and found["fault"]["place"]["thread"] == [0, 0, 0]
    assert sum(one["requests"] for one in found["accesses"] if one["kind"] == "global load") == 2  # up to the fault


@pytest.mark.parametrize(
    ("kernel", "n", "block", "status"),
    [("scale", 64, 65, 3), ("race", 64, 64, 4), ("strided", 0, 32, 0), ("strided", 77, 1, 8), ("scale", 1, 2048, 9)],
)
def test_exit_status_tells_the_kind_of_fault(file: str, kernel: str, n: int, block: int, status: int) -> None:
    given = ["--kernel", kernel, "--grid", "1", "--block", str(block), "--arg", str(n), *ARRAYS]
    assert main(["emulate", file, *given, "--out", "y:y.npy"]) == status
    assert os.path.exists("y.npy") == (status == 0)


def test_every_kind_of_fault_has_a_status_that_the_help_explains() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EmulatorError)}
    unknown = {kind for kind in kinds - {EmulatorError, errors.UnsupportedInstruction} if statuses.status_of(kind) < 3}
    assert len(kinds) > 20 and unknown == set()
    assert statuses.status_of(errors.AsyncRace) == 4 and statuses.status_of(errors.Deadlock) == 7
    listed = set(map(int, re.findall(r"^ +(\d+)  \S", emulate.__doc__, re.MULTILINE)))
    assert listed == {0, 1, 2, statuses.SCHEDULE, *map(statuses.status_of, kinds)}


class Page(HTMLParser):
    """The elements of a page that refer to each other, and whether its tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.open, self.outside = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.outside += [value for name, value in attrs if name in ("src", "srcset") or "//" in (value or "")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_shows_the_costs_of_each_line(file: str) -> None:
    given = ["--kernel", "strided", "--grid", "1", "--block", "32", "--arg", "32", "--arg", "x:float32:1024:ones"]
    assert main(["emulate", file, *given, "--arg", "y:float32:8", "--html", "out.html"]) == 0
    text = Path("out.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == [] and page.outside == [] and "<script" not in text
    assert len(page.ids) == len(set(page.ids)) == len(SOURCE.splitlines())
    assert page.links and all(link[1:] in page.ids for link in page.links)
    row = re.search(r'<details id="L20".*?</details>', text, re.DOTALL)[0]
    assert '<span class="high">32 (4)</span>' in row and '<span class="high">31</span>' in row
    assert "each of which moves 32 sectors of 32 bytes. The bytes would fit into 4." in row
    assert "1 of 1" in re.search(r'<details id="L21".*?</details>', text, re.DOTALL)[0]
    assert "No fault found." in text and "prefers-color-scheme: dark" in text


def test_page_marks_both_places_of_a_fault(file: str) -> None:
    given = ["--kernel", "race", "--grid", "1", "--block", "64", "--arg", "1", *ARRAYS]
    assert main(["emulate", file, *given, "--html", "out.html"]) == 4
    text = Path("out.html").read_text(encoding="utf-8")
    assert '<details id="L16" class="at-fault" open>' in text and '<details id="L15" class="at-other">' in text
    assert {"#L15", "#L16"} <= set(Page(text).links)
    assert "the counters are those up to the fault" in text


def test_page_escapes_what_does_not_compile(file: str) -> None:
    Path("wrong.cu").write_text("template <int n> __global__ void k() { nope<n>(); }\n__global__ void j() { nope; }\n")
    assert main(["emulate", "wrong.cu", "--grid", "1", "--block", "1", "--html", "out.html"]) == 1
    text = Path("out.html").read_text(encoding="utf-8")
    assert "It did not run." in text and "&lt;" in text and Page(text).open == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--arg", "x:@no.npy"], "--arg x:@no.npy: no file no.npy"),
        (["--arg", "x:@bad.npy"], "--arg x:@bad.npy: cannot read bad.npy"),
        (["--arg", "x:@both.npz"], "both.npz has no array 'x'; it has a"),
        (["--arg", "x:float32:4:ints.npy"], "ints.npy holds int64 3, not float32 4"),
        (["--arg", "1:2:3:4"], "'2' is not a NumPy dtype"),
        (["--arg", "n", "--constant", "7"], "--arg n: expected a number"),
        (["--constant", "7"], "--constant 7: expected NAME:TYPE:SHAPE"),
        (["--arg", "x:int8:4", "--arg", "x:int8:4"], "two arrays have the same name"),
        (["--out", "y:y.npy"], "--out y:y.npy: expected NAME:FILE with the name of an array"),
        (["--arg", "y:int8:4", "--out", "y:y.txt"], "expected a .npy or .npz file"),
        (["--html", "nowhere/out.html"], "--html nowhere/out.html: no folder nowhere"),
        (["--json", "."], "--json .: . is a folder"),
        (["-I", "nowhere"], "-I nowhere: no such folder"),
        (["--arg", "x:int8:999999999999999"], "no memory for an array of 999999999999999 int8"),
        (["--arg", "x:int8:99999999999999999999999"], "no memory for an array of 99999999999999999999999 int8"),
        (["--max-steps", "0"], "--max-steps 0: expected a number of at least 1"),
        (["--heap", "-1"], "--heap -1: expected a number of at least 0"),
        (["--kernel", "scale", "--arg", "1"], "scale takes 3 arguments, 1 given"),
        ([], "has several kernels; name one of them: scale, race, strided"),
    ],
)
def test_bad_input_is_named_in_one_line(file: str, given: list[str], says: str, capsys: pytest.CaptureFixture) -> None:
    Path("bad.npy").write_bytes(b"nothing")
    np.savez("both.npz", a=np.zeros(1))
    np.save("ints.npy", np.arange(3))
    assert main(["emulate", file, "--grid", "1", "--block", "1", *given]) == 2
    shown = capsys.readouterr()
    assert says in shown.err and shown.err.splitlines()[-1].startswith("climb emulate: error: ") and shown.out == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_page_that_cannot_be_written_stops_before_the_launch(file: str, capsys: pytest.CaptureFixture) -> None:
    Path("locked").mkdir(mode=0o500)
    assert main(["emulate", file, *SCALE, "--arg", "1", *ARRAYS, "--html", "locked/out.html"]) == 2
    assert "no permission to write locked/out.html" in capsys.readouterr().err


def test_report_leaves_out_the_cheapest_lines(file: str, capsys: pytest.CaptureFixture) -> None:
    given = ["--kernel", "strided", "--grid", "1", "--block", "32", "--arg", "32", "--arg", "x:float32:1024:ones"]
    assert main(["emulate", file, *given, "--arg", "y:float32:8", "--top", "2"]) == 0
    shown = capsys.readouterr().out
    assert "1 cheaper line is not shown; --top 0 shows all" in shown
    assert "global load" in shown and "shared store" in shown and "global store" not in shown


def test_long_launch_shows_that_it_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    from climb.cli.emulation.progress import progress

    with progress("k", first=0):
        pass
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    clock = SimpleNamespace(monotonic=iter((10.0, 15.0)).__next__)
    monkeypatch.setattr("climb.cli.emulation.progress.time", clock)
    told = threading.Event()

    def where() -> str:
        told.set()
        return "now at k.cu:3"

    with progress("k", where, first=0):
        assert told.wait(30)
    assert "k: running for 5 s, now at k.cu:3" in capsys.readouterr().err


def test_a_loop_that_may_end_is_stopped_by_the_limit_on_steps_which_can_be_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    from climb.cli.emulate import _place

    path = tmp_path / "long.cu"
    path.write_text("__global__ void k(int* x) { while (atomicAdd(x, 2) != 3000) { } }\n")
    given = ["emulate", str(path), "--grid", "1", "--block", "1", "--arg", "x:int32:1"]
    assert main([*given, "--max-steps", "1000"]) == 7
    said = capsys.readouterr().err
    assert "more than 1000 steps; if the kernel is only long, raise max_steps (climb emulate --max-steps)" in said
    assert re.fullmatch(r"now at long\.cu:1, after \d+ steps", _place())
    assert main([*given, "--max-steps", "2000"]) == 0


def test_a_race_in_global_memory_is_a_fault_unless_speed_is_asked_for(tmp_path: Path, capsys) -> None:
    path = tmp_path / "shift.cu"
    path.write_text("__global__ void shift(int* x) { int v = x[threadIdx.x + 1]; x[threadIdx.x] = v; }\n")
    given = ["emulate", str(path), "--grid", "1", "--block", "64", "--arg", "x:int32:65:range"]
    assert main(given) == 4
    assert "race in global memory: this write of byte 4 of argument 0" in capsys.readouterr().err
    assert main([*given, "--fast"]) == 0
