"""Edits of a kernel: each kind of outcome, what is shown of it, and edits that cannot be."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from tools.samples import text_of

from climb import break_it, edit, load_ladder
from climb.bench.checking import poisoned
from climb.bench.edits import attempt, of_rung, of_source

SIZE = {"rows": 64, "cols": 64}
TILE = "tile[kTile][kTile]"
GUARD = "if (row + j < cols && col < rows) {"

#: Reverses each block of 32 floats through shared memory.
REVERSE = """// A comment that opens the file.
__global__ void reverse(const float* __restrict__ source, float* __restrict__ target, int n)
{
    __shared__ float part[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) {
        part[threadIdx.x] = source[i];
    }
    __syncthreads();  // the part is stored before any thread reads from it
    if (i < n) {
        target[i] = part[63 - threadIdx.x];
    }
}
"""


def reverse(*edits, text: str = REVERSE, n: int = 128, **more):
    source = np.arange(n, dtype=np.float32)
    want = source.reshape(-1, 64)[:, ::-1].reshape(-1)
    args = [source, poisoned((n,), "float32"), np.int32(n)]
    given = {"kernel": "reverse", "grid": (n // 64,), "block": (64,), "args": args, "expect": {"target": want}}
    return break_it(text, edits=edits, **(given | more))


def outcome(shown, says: str) -> str:
    """The part of the plain text about one edit."""
    (found,) = (part for part in repr(shown).split("\n\n") if part.split("\n")[0].endswith(f", {says}"))
    return found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (("63 - threadIdx.x", "63 - thread"), 'Does not compile.\n    kernel.cu:11: error: identifier "thread"'),
        (("part[64]", "part[63]"), "Stopped by the emulator: an access out of bounds.\n    out of bounds: write of 4"),
        (("source[i]", "source[i + 1]"), "right after the end of source (512 bytes)\n      kernel reverse, kernel.cu"),
        (("__syncthreads();", ""), "Stopped by the emulator: a race.\n    race in shared memory"),
        ((" * 64 + threadIdx.x;", "+ 0;\n    if (threadIdx.x > 9) return;"), "a barrier that not all threads reach"),
        (("    target[i] =", "    if (i < 64) target[i] ="), "64 of 128 elements of target are never written"),
        (("63 - threadIdx", "threadIdx"), "128 of 128 elements of target are wrong, the first is target[0]: 0 instead"),
        (("i < n) {\n        target", "i + 0 < n) {\n        target"), "Right, and the counts are as before."),
        (("__syncthreads();", "__syncthreads(); __syncthreads();"), "Right, with 2 times the barriers"),
        (("    const int i", "    while (true) {}\n    const int i"), "an endless loop"),
        (("part[threadIdx.x] = source[i];", ""), "a read of memory that nothing has written"),
        ((), "a launch that is not possible.\n    wrong launch: a block of 2048 threads"),
    ],
)  # fmt: skip
def test_each_kind_of_outcome_is_told(changes: tuple[str, ...], expected: str) -> None:
    shown = reverse(edit("x", *changes, block=None if changes else (2048,)))
    assert expected in outcome(shown, "x")
    assert outcome(shown, "as it is").split("\n")[2] == (
        "  Right: 4 sectors per global load, 4 sectors per global store, 1 wavefront per shared load, "
        "1 wavefront per shared store."
    )


def test_rung_with_more_conflicts_is_right_and_says_how_many() -> None:
    change = edit("no padding", "[kTile + 1]", "[kTile]")
    shown = break_it(load_ladder("transpose")["padded"], SIZE, edits=[change], picture="shared load")
    told = outcome(shown, "no padding")
    assert "Right, with 32 times the wavefronts of shared loads." in told
    assert re.search(r"shared loads: bank conflicts +0 -> 3968", told)
    assert "this takes 32 wavefronts where 1 would do" in told
    assert shown.html.count("<svg") == 2 and "shared load: 32 wavefronts in a row; 1 would do" in shown.html


def test_picture_that_an_edit_does_not_change_is_held_once() -> None:
    change = edit("store later", "row + j < rows && col < cols", "col < cols && row + j < rows")
    shown = break_it(load_ladder("transpose")["padded"], SIZE, edits=[change], picture="shared load")
    assert shown.html.count("<svg") == 1 and "Right" in outcome(shown, "store later")


def test_rung_at_another_size_is_not_compared_with_the_first() -> None:
    change = edit("an edge", size={"rows": 50, "cols": 40})
    told = outcome(break_it(load_ladder("transpose")["tiled"], SIZE, edits=[change]), "an edge")
    assert "(source, target, 50, 40);" in told
    assert "Right for this data: " in told and "->" not in told


def test_edit_that_mends_an_exhibit_says_so() -> None:
    wrong = REVERSE.replace("63 -", "62 -")
    shown = reverse(edit("63", "62 -", "63 -"), text=wrong)
    assert "Stopped by the emulator" in outcome(shown, "as it is")
    assert "  Right, the edit mends it: 4 sectors" in outcome(shown, "63")


def test_other_data_kernel_and_options_are_launched() -> None:
    text = REVERSE.replace("63 - threadIdx.x", "63 - threadIdx.x + OFF") + REVERSE.replace("reverse", "other")
    half = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.int32(64)]
    want = {"target": np.arange(64, dtype=np.float32)[::-1]}
    shown = reverse(
        edit("smaller", grid=(1,), args=half, expect=want),
        edit("the other", kernel="other"),
        edit("off", options=["-DOFF=1"]),
        text=text.replace("OFF", "0 OFF"), options=["-DOFF="],
    )  # fmt: skip
    assert "Right for this data" in outcome(shown, "smaller")
    assert "other<<<2, 64>>>(source, target, 128);" in outcome(shown, "the other")
    assert "Does not compile" in outcome(shown, "off")


def test_removed_line_goes_with_its_comment_and_the_next_line_moves_up() -> None:
    told = outcome(reverse(edit("x", "__syncthreads();", "")), "x")
    assert "9 -     __syncthreads();  // the part is stored" in told and "+ " not in told
    assert "kernel.cu:10: target[i] = part[63 - threadIdx.x];" in told


def test_removed_lines_leave_the_others_as_they_are() -> None:
    text = REVERSE.replace(
        "    if (i < n) {\n        target", "    int k = 0;\n    if (k == 0 && i < n) {\n        target"
    )
    told = outcome(reverse(edit("x", "    int k = 0;\n", "", "k == 0 && ", ""), text=text), "x")
    rows = [row.split(maxsplit=1)[1] for row in told.split("\n")[1:4]]
    assert rows == ["-     int k = 0;", "-     if (k == 0 && i < n) {", "+     if (i < n) {"]
    assert "Right" in told


def test_options_are_shown_where_an_edit_changes_them() -> None:
    text = REVERSE.replace("63 - threadIdx.x", "63 - threadIdx.x + OFF - OFF").replace("// A", "#define NONE\n// A")
    shown = reverse(edit("more", options=["-DOFF=2"]), text=text, options=["-DOFF=1"])
    assert "// compiled with -DOFF=2" in outcome(shown, "more") and "-DOFF=2</ins>" in re.sub(
        "<[/]?span.*?>", "", shown.html
    )


def test_equal_changes_of_two_kinds_are_said_at_once() -> None:
    rung = load_ladder("divergence")["blocked"]
    text = "(static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPoints"
    apart = "static_cast<size_t>(blockIdx.x) * blockDim.x * kPoints + threadIdx.x"
    change = edit("apart", text, apart, "first + p;", "first + p * blockDim.x;")
    shown = break_it(rung, {"n": 256, "data": "periodic"}, edits=[change])
    assert "Right, with 1/8 of the sectors of global loads and stores." in outcome(shown, "apart")


def test_divergence_that_goes_away_with_other_data_is_said() -> None:
    text = "__global__ void half(const int* a, int* b) "
    text += "{ if (a[threadIdx.x]) b[threadIdx.x] = 1; else b[threadIdx.x] = a[0]; }"
    mixed, even = np.arange(32, dtype=np.int32) % 2, np.ones(32, np.int32)
    zeros = np.zeros(32, np.int32)
    shown = break_it(
        text, kernel="half", grid=(1,), block=(32,), args=[mixed, zeros], expect={"b": mixed},
        edits=[edit("ones", args=[even, zeros], expect={"b": even})],
    )  # fmt: skip
    assert "1 of 1 branches diverges." in outcome(shown, "as it is")
    assert "none of 1 branches diverges." in outcome(shown, "ones")


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: reverse(edit("x", "nowhere", "")), ValueError, "'nowhere' occurs 0 times in kernel.cu, expected 1"),
        (lambda: reverse(edit("x", "if (i < n)", "")), ValueError, "occurs 2 times in kernel.cu, expected 1"),
        (lambda: edit("x"), ValueError, "changes nothing"),
        (lambda: edit("x", "a", "a"), ValueError, "changes nothing"),
        (lambda: edit("x", "a"), TypeError, "has no new text"),
        (lambda: reverse(), ValueError, "at least one edit"),
        (lambda: reverse(edit("x", "63", "62"), expect={"out": np.zeros(128)}), ValueError, "expect names 'out'"),
        (lambda: reverse(edit("x", "63", "62"), expect={"target": np.zeros(12)}), ValueError, "has the shape"),
        (lambda: reverse(edit("x", "63", "62"), args=[1, 2, 3]), TypeError, "source is a int"),
        (lambda: reverse(edit("x", size=SIZE)), ValueError, "only a rung has"),
        (lambda: reverse(edit("x", "63", "62"), picture="shared atomic"), ValueError, "the trace has"),
        (lambda: reverse(edit("x", "63", "62"), lines=(3, 40)), ValueError, "are not in the source"),
        (lambda: break_it(REVERSE, edits=[edit("x", "63", "62")]), TypeError, "needs kernel="),
        (lambda: break_it(load_ladder("transpose")["tiled"], edits=[edit("x", "8", "4")]), TypeError, "takes a size"),
        (
            lambda: break_it(load_ladder("transpose")["tiled"], SIZE, edits=[edit("x", args=[])]),
            ValueError,
            "makes its arguments itself",
        ),
    ],
)
def test_what_cannot_be_tried_is_an_error_that_says_why(make, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=re.escape(says)):
        make()


class Balanced(HTMLParser):
    """Notes elements that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closed at once."""

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def tiled():
    return break_it(
        load_ladder("transpose")["tiled"], SIZE, picture="shared load",
        edits=[
            edit("no barrier", "__syncthreads();", ""),
            edit("33 < 34 columns", TILE, "tile[kTile][kTile + 1]"),
            edit("half", "kRows = 8", "kRows = 4", block=(32, 4)),
        ],
    )  # fmt: skip


def test_html_is_balanced_names_its_picture_and_holds_the_source_once(tiled) -> None:
    parser = Balanced()
    parser.feed(tiled.html)
    parser.close()
    assert (parser.open, parser.wrong) == ([], [])
    for picture in re.findall(r"<svg.*?</svg>", tiled.html):
        assert 'aria-label="32 lanes reach' in picture
        ElementTree.fromstring(picture)
        assert len(picture) < 8000
    assert tiled.html.count("transpose_tiled(") == 1, "the definition; launches and messages have other signs"
    assert "33 &lt; 34 columns" in tiled.html
    assert len(re.sub(r"<svg.*?</svg>", "", tiled.html)) < 12_000


def test_html_says_what_the_plain_text_says(tiled) -> None:
    shown = " ".join(text_of(tiled.html).split())
    for part in repr(tiled).split("\n\n"):
        for line in part.split("\n")[1:]:
            if not re.match(r"  +(?:\d+ [+-]|\w.*->|\d+ lanes)|  \w+<<<", line):
                assert " ".join(line.split()) in shown


def test_source_with_all_deleted_and_inserted_lines_is_the_edited_one(tiled) -> None:
    """The page assembles the edited source: the listing's lines by number, with each edit's lines put in place."""
    rung = load_ladder("transpose")["tiled"]
    listing = re.search(r'<pre class="rl-break-code highlight">(.*?)</pre>', tiled.html, re.DOTALL)[1]
    lines = {int(m[1]): m[2] for m in re.finditer(r"(?m)^<b> *(\d+)</b>(?:  (.*))?$", listing)}
    (change,) = re.findall(
        r'columns</summary><pre class="rl-break-change highlight">(.*?)</pre>', tiled.html, re.DOTALL
    )
    gone = [int(n) for n in re.findall(r'<del data-n="(\d+)">- ', change)]
    new = re.findall(r'<ins data-n="(\d+)">\+ (.*?)</ins>', change)
    for number in gone:
        lines[number] = None
    for number, html in new:
        lines[int(number)] = html
    text = [text_of(html or "").rstrip("\n") for html in lines.values()]
    expected = rung.source.replace(TILE, "tile[kTile][kTile + 1]").rstrip("\n").split("\n")
    assert text == expected[min(lines) - 1 :]


def test_long_source_is_shown_near_its_edits() -> None:
    text = REVERSE.replace("__syncthreads();", "__syncthreads();" + "\n    //" * 60)
    shown = reverse(edit("x", "63 -", "62 -"), text=text)
    listing = re.search(r'<pre class="rl-break-code highlight">(.*?)</pre>', shown.html, re.DOTALL)[1]
    numbers = [int(n) for n in re.findall(r"<b> *(\d+)</b>", listing)]
    assert numbers == list(range(67, 74)) and "63 - " in text_of(listing)
    chosen = reverse(edit("x", "63 -", "62 -"), text=text, lines=(2, 5))
    assert re.findall(r"<b> *(\d+)</b>", chosen.html) == ["2", "3", "4", "5"]


def test_output_is_the_same_each_time_and_has_no_address(tiled) -> None:
    again = reverse(edit("x", "source[i]", "source[i + 1]"), edit("y", "part[64]", "part[63]"))
    assert again == reverse(edit("x", "source[i]", "source[i + 1]"), edit("y", "part[64]", "part[63]"))
    assert "0x" not in again.html + repr(again) + tiled.html


def test_edited_kernels_run_on_the_emulator_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes through ``cp``, which is CuPy where there is a GPU."""
    from climb.bench import binding, checking, ladder

    for module in (binding, checking, ladder):
        monkeypatch.setattr(module, "cp", None)
    assert attempt(of_rung(load_ladder("transpose")["padded"], SIZE)).kind == "right"


def test_output_that_nothing_expects_is_only_said_to_run() -> None:
    args = [np.zeros(64, np.float32), np.zeros(64, np.float32), np.int32(64)]
    assert attempt(of_source(REVERSE, "reverse", (1,), (64,), args, {})).kind == "ran"


def test_exact_results_are_asked_of_integers() -> None:
    text = "__global__ void add(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }"
    large = np.full(32, 1_000_000, np.int32)
    found = attempt(of_source(text, "add", (1,), (32,), [large, np.zeros_like(large)], {"b": large + 1}))
    assert found.kind == "wrong" and found.message.endswith("b[0]: 1000000 instead of 1000001")


def test_box_says_the_options_of_the_compiler_but_no_folder_of_this_machine() -> None:
    args = [np.zeros(64, np.float32), poisoned((64,), "float32"), np.int32(64)]
    options = ("-lineinfo", "-I/a/folder/of/mine")
    shown = of_source(REVERSE, "reverse", (1,), (64,), args, {}, 0.0, 0, options).launch_text
    assert "compiled with -lineinfo" in shown and "mine" not in shown


def test_rung_of_one_architecture_is_compiled_for_it() -> None:
    rung, size = load_ladder("sparse_gemm")["wgmma"], {"m": 16, "n": 8, "k": 64}
    assert attempt(of_rung(rung, size)).kind == "right"
    early = of_rung(rung, size).edited(edit("no wait", "mbarrier_wait(&full[slot], slab / kStages % 2);", ""))
    assert attempt(early).kind not in ("right", "compile")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("    wait_for_launch_before();\n", ""), "no griddepcontrol.wait precedes this access"),
        (("const int* from", "const int* __restrict__ from"), "promises that its memory is read-only"),
    ],
)
def test_launches_that_may_start_early_are_tried_as_such(change: tuple[str, str], says: str) -> None:
    shown = break_it(load_ladder("chain")["dependent"], {"steps": 2}, edits=[edit("early", *change)])
    assert "Right" in outcome(shown, "as it is")
    assert "Stopped by the emulator: race between launches." in outcome(shown, "early")
    assert says in outcome(shown, "early")
