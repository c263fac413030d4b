"""``climb new`` in a copy of the repository: what it makes passes the tests, what it refuses leaves no file behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from tools import notebooks

from climb import paths
from climb.cli import main
from climb.toolchain import cache

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "_build", "*.pyc.*")
RUNG_TESTS = "tests/kernels/float4/test_rungs.py"


class Copy:
    """A copy of the repository, in which commands run without a GPU, with the times of the records."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT, root, ignore=LEFT_OUT)  # with Python's bytecode, which stays valid
        (root / "_build").mkdir()
        (root / "_build" / "compiled").symlink_to(cache.FOLDER)
        self.env = {**os.environ, "WORKLOG_BACKEND": "emulator", "WORKLOG_TIMINGS": "record", "COLUMNS": "200"}
        self.env.pop("PYTHONPATH", None)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], cwd=self.root, env=self.env, capture_output=True, text=True, check=False
        )

    def new(self, *argv: str) -> str:
        """Return what ``climb new`` prints. It must succeed."""
        done = self.run("-m", "climb", "new", *argv)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pytest(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "pytest", "-p", "no:cacheprovider", "-rfE", *argv)

    def text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")

    def files(self) -> dict[str, bytes]:
        """All files that git would see, by path."""
        found = (p for p in self.root.rglob("*") if p.is_file() and not {"_build", "__pycache__"} & set(p.parts))
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in found if p.suffix != ".pyc"}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("new") / "repository")


@pytest.fixture(scope="module")
def rung(copy: Copy) -> str:
    """The output of the command that puts a rung into the middle of saxpy."""
    return copy.new("rung", "saxpy/made_by_test", "--after", "float4")


@pytest.fixture(scope="module")
def exercise(copy: Copy) -> str:
    """The output of the command that adds an exercise to a chapter that has some."""
    return copy.new("exercise", "float4/made_here")


@pytest.fixture(scope="module")
def chapter(copy: Copy) -> str:
    """The output of the command that makes a chapter, followed by that of the command for its ladder."""
    return copy.new("chapter", "my-chapter", "--part", "Techniques") + copy.new("ladder", "my-chapter/twice")


@pytest.mark.parametrize("made", ["made_by_test", "made_here", "my-chapter", "between", "copies_64"])
def test_names_made_here_are_free_in_the_repository_and_in_the_recipes(made: str) -> None:
    """You may run these tests after following a recipe of ARCHITECTURE.md: the names in its recipes stay free."""
    assert f"/{made}" not in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    used = [path for folder in ("kernels", "book") for path in (ROOT / folder).rglob(f"*{made}*")]
    assert used == []


# A rung.


@pytest.mark.thorough
def test_a_new_rung_is_a_copy_with_its_kernel_renamed_and_a_stub_header(copy: Copy, rung: str) -> None:
    before, made = (copy.text(f"kernels/float4/saxpy/{name}.cu") for name in ("03_float4", "04_made_by_test"))
    requires = before.index("// Requires: ")
    stub = "// Idea: to be written; this is a copy of float4.\n// From the rung before: nothing has changed yet.\n"
    assert made == stub + before[requires:].replace("saxpy_float4", "saxpy_made_by_test")
    assert "saxpy_made_by_test" in made


@pytest.mark.thorough
def test_a_new_rung_stands_in_its_ladder_with_its_launch(copy: Copy, rung: str) -> None:
    module = "".join(copy.text("kernels/float4/saxpy/__init__.py").split())
    assert 'Rung("made_by_test","tobewritten;acopyoffloat4",_launches("saxpy_made_by_test",4),alignment=' in module


@pytest.mark.thorough
def test_later_rungs_are_renumbered(copy: Copy, rung: str) -> None:
    rungs = [path.stem[3:] for path in sorted((ROOT / "kernels/float4/saxpy").glob("*.cu"))]
    rungs.insert(rungs.index("float4") + 1, "made_by_test")
    expected = [f"{number:02d}_{name}.cu" for number, name in enumerate(rungs, 1)]
    assert len(expected) >= 5 and expected.index("04_made_by_test.cu") == 3
    assert sorted(path.name for path in (copy.root / "kernels/float4/saxpy").glob("*.cu")) == expected


@pytest.mark.thorough
def test_a_new_rung_passes_its_tests_once_it_is_another_program(copy: Copy, rung: str) -> None:
    wanted = "made_by_test or same_program or every_source"
    done = copy.pytest(RUNG_TESTS, "-k", wanted)
    assert "1 failed" in done.stdout, done.stdout
    assert f"FAILED {RUNG_TESTS}::test_no_two_rungs_are_the_same_program[saxpy]" in done.stdout
    assert "until the code differs from float4's, test_no_two_rungs_are_the_same_program fails" in rung
    file = "kernels/float4/saxpy/04_made_by_test.cu"
    made = copy.text(file)
    copy.write(file, made.replace("a * p.x + q.x", "q.x + a * p.x"))
    records = "old_name or (no_point_of_the_book and saxpy)"  # it has no record: pending, and no failure
    done = copy.pytest(RUNG_TESTS, "tests/bench/test_freshness.py", "-k", f"{wanted} or {records}")
    copy.write(file, made)
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_a_new_rung_has_a_planted_fault(copy: Copy, rung: str) -> None:
    assert '    ("saxpy", "made_by_test", "a * p.w + q.w", "a * p.w + q.z", WrongResult),\n' in copy.text(RUNG_TESTS)


@pytest.mark.thorough
def test_includes_follow_renumbered_rungs(copy: Copy) -> None:
    """Some rungs of convlayer include another rung, and those of convlayer_int include rungs of convlayer."""
    folder = copy.root / "kernels/conv_layers"
    before = {path for path in folder.rglob("*.cu") if '#include "' in path.read_text(encoding="utf-8")}
    assert len(before) >= 3
    printed = copy.new("rung", "convlayer/between", "--after", "map_atomics")
    assert "renamed  kernels/conv_layers/convlayer/02_" in printed
    for path in folder.rglob("*.cu"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith('#include "'):
                included = line.split('"')[1]
                beside, shared = path.parent / included, copy.root / "kernels/common" / included
                assert beside.exists() or shared.exists(), f"{path}: {line}"


def test_a_ladder_that_makes_its_rungs_otherwise_is_left_and_the_author_told(copy: Copy) -> None:
    """The rungs of histogram_bins are named by a number of copies."""
    module, tests = "kernels/privatization/histogram_bins/__init__.py", "tests/kernels/privatization/test_rungs.py"
    before = copy.text(module), copy.text(tests)
    printed = copy.new("rung", "histogram_bins/copies_64")
    assert (copy.text(module), copy.text(tests)) == before
    assert f"1. {module} has no single call that makes copies_32. Add the rung to `rungs`" in printed
    assert 'Rung("copies_64", "the idea in a few words", launches)' in printed
    assert '("histogram_bins", "copies_64", "the text", "the text with a mistake", WrongResult),' in printed


# An exercise.


@pytest.mark.thorough
def test_a_new_exercise_leaves_the_page_in_the_form_that_the_tests_want(copy: Copy, exercise: str) -> None:
    page = nbformat.read(copy.root / "book/float4.ipynb", as_version=nbformat.NO_CONVERT)
    assert [problem for rule in notebooks.RULES for problem in rule(page)] == []


@pytest.mark.thorough
def test_the_cells_of_a_new_exercise_end_the_section_exercises(copy: Copy, exercise: str) -> None:
    """In their order, with every other cell as it was; a cell that goes on with another section is cut in two."""
    cells = nbformat.read(copy.root / "book/float4.ipynb", as_version=4).cells
    ids = [cell.id for cell in cells]
    at = ids.index("ex-made-here")
    parts = ("", "-hints", "-text", "-cell", "-solution", "-check")
    assert ids[at : at + 6] == [f"ex-made-here{part}" for part in parts]
    assert cells[at + 6].source.startswith("## Where this began")
    assert [cell.outputs[-1].data["text/plain"].splitlines()[-1] for cell in (cells[at + 3], cells[at + 5])] == [
        "made_here: not yet",
        "made_here: solved",
    ]
    old = nbformat.read(ROOT / "book/float4.ipynb", as_version=4).cells
    others = [cell.source for cell in cells if not cell.id.startswith("ex-made-here")]
    assert "".join("".join(others).split()) == "".join("".join(cell.source for cell in old).split())


@pytest.mark.thorough
def test_a_new_exercise_passes_the_tests_of_exercises(copy: Copy, exercise: str) -> None:
    files = ("tests/bench/test_exercise.py", "tests/book/test_exercises_alone.py")
    done = copy.pytest("--thorough", *files, "-k", "made_here or float4")
    assert done.returncode == 0, done.stdout


# A chapter and a ladder.


@pytest.mark.thorough
def test_a_new_chapter_and_its_ladder_pass_their_tests(copy: Copy, chapter: str) -> None:
    files = (
        "kernels/my_chapter", "kernels/test_every_ladder.py", "bench/test_exercise.py", "book/test_notebooks.py",
        "book/test_findings.py", "book/test_exercises_alone.py", "book/test_standalone_cells.py",
    )  # fmt: skip
    wanted = "my_chapter or test_every_ladder or my-chapter or table_of_contents or figure_names or neighbours"
    done = copy.pytest(*(f"tests/{file}" for file in files), "-k", f"({wanted}) and not outside_the_book")
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_the_outputs_of_a_new_chapter_are_what_its_cells_show(copy: Copy, chapter: str) -> None:
    done = copy.pytest("--nbval", "--nbval-current-env", "book/my-chapter.ipynb")
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_the_book_builds_with_a_new_chapter(copy: Copy, chapter: str, tmp_path: Path) -> None:
    """The page alone: the whole book is for ``make book``."""
    for folder in ("book/_static", "kernels/my_chapter"):
        shutil.copytree(copy.root / folder, tmp_path / folder)
    for file in ("book/references.bib", "book/my-chapter.ipynb"):
        shutil.copy(copy.root / file, tmp_path / file)
    config = copy.text("_config.yml").replace("book/_extensions", str(copy.root / "book/_extensions"))
    (tmp_path / "_config.yml").write_text(config, encoding="utf-8")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/my-chapter\n", encoding="utf-8")
    command = "from jupyter_book.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "build", "-W", "-n", "--keep-going", "--all", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "_build/html/book/my-chapter.html").read_text(encoding="utf-8")
    assert "neighbours: not yet" in page and "neighbours: solved" in page


@pytest.mark.thorough
def test_a_new_chapter_is_listed_at_the_end_of_its_part(copy: Copy, chapter: str) -> None:
    listed = notebooks.toc_files(copy.root / "_toc.yml")
    assert listed[listed.index("book/my-chapter") + 1] == "book/conv1d"
    assert copy.text("_toc.yml").replace("      - file: book/my-chapter\n", "") == (ROOT / "_toc.yml").read_text()


@pytest.mark.thorough
def test_a_new_chapter_is_linked_from_the_front_page_at_the_end_of_its_part(copy: Copy, chapter: str) -> None:
    before, after = (
        nbformat.reads(text, 4) for text in ((ROOT / "book/intro.ipynb").read_text(), copy.text("book/intro.ipynb"))
    )
    ((old, new),) = [(a.source, b.source) for a, b in zip(before.cells, after.cells, strict=True) if a != b]
    link = "- [My chapter](my-chapter.ipynb), {minutes}`my-chapter`: to be written.\n"
    assert new.replace(link, "") == old and f"that wait for each other.\n{link}\nWorklogs" in new
    done = copy.pytest("tests/book/test_front_page.py", "-k", "linked or beside_a_link")
    assert done.returncode == 0, done.stdout


@pytest.mark.thorough
def test_python_that_is_made_is_in_the_repositorys_format(copy: Copy, rung: str, exercise: str, chapter: str) -> None:
    made = ["kernels/my_chapter", "kernels/float4", "tests/kernels/my_chapter", RUNG_TESTS]
    for command in (["check"], ["format", "--check"]):
        done = copy.run("-m", "ruff", *command, "--no-cache", *made)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
def test_cuda_that_is_made_fits_into_88_columns(copy: Copy, exercise: str, chapter: str) -> None:
    made = [*copy.root.glob("kernels/my_chapter/*/*.cu"), *copy.root.glob("kernels/float4/exercises/made_here*.cu")]
    assert len(made) == 5
    assert (
        max(len(line) for path in made for line in path.read_text(encoding="utf-8").splitlines())
        <= notebooks.CUDA_COLUMNS
    )


# What is refused.

REFUSED = [
    (["rung", "saxpi/x"], "no ladder 'saxpi'; the ladders are accurate_sum, "),
    (["rung", "saxpy"], "'saxpy' is not LADDER/NAME"),
    (["rung", "saxpy/Unrolled"], "'Unrolled' cannot be a name; expected lower case letters"),
    (["rung", "saxpy/float2"], "saxpy has a rung 'float2' already"),
    (["rung", "saxpy/more", "--after", "double"], "saxpy has no rung 'double'; it has scalar, float2, "),
    (["ladder", "nowhere/x"], "no chapter 'nowhere'; the chapters are "),
    (["ladder", "float4/copy"], "there is a ladder 'copy' already"),
    (["ladder", "float4/exhibits"], "'exhibits' cannot be a name; kernels/ has folders of that name"),
    (["exercise", "nowhere/x"], "no chapter 'nowhere'; the chapters are "),
    (["exercise", "float4/rows"], "kernels/float4/exercises/__init__.py defines 'rows' already"),
    (["exercise", "float4/class"], "'class' cannot be a name; it is a word of Python"),
    (["exercise", "float4/../x"], "'../x' cannot be a name"),
    (["chapter", "bank-conflicts"], "book/bank-conflicts.ipynb exists already"),
    (["chapter", "first-kernel"], "book/first-kernel.ipynb exists already"),
    (["chapter", "glossary"], "book/glossary.md exists already"),
    (["chapter", "a" * 41], "'aaaaaaaaaaaaaaaaaaaa...' cannot be a name; it has 41 characters, at most 40 fit"),
    (["rung", "exchange/more"], "'exchange' is a ladder over several GPUs"),
    (["chapter", "9-lives"], "'9-lives' cannot be a name; expected lower case letters, digits and -, as in warp-"),
    (["chapter", "Foo Bar"], "'Foo Bar' cannot be a name; expected lower case letters, digits and -"),
    (["chapter", "common"], "'common' cannot be a name"),
    (["chapter", "warps", "--part", "Middle"], "_toc.yml has no part 'Middle'; its parts are Start, "),
    (["poem", "x"], "argument KIND: invalid choice: 'poem'"),
    ([], "the following arguments are required: KIND"),
]

#: Runs each command line of its argument and prints the exit status, the output and the errors of each.
RUN_ALL = """
import contextlib, io, json, sys
from climb.cli import main
results = []
for argv in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["new", *argv])
    results.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""


def test_what_is_refused_gives_one_line_and_status_2_and_no_file(copy: Copy) -> None:
    before = copy.files()
    done = copy.run("-c", RUN_ALL, json.dumps([argv for argv, _ in REFUSED]))
    assert done.returncode == 0, done.stderr
    for (argv, says), (status, out, err) in zip(REFUSED, json.loads(done.stdout), strict=True):
        assert (status, out, err.count("\n")) == (2, "", 1), (argv, err)
        assert says in err, argv
    assert copy.files() == before


def test_an_existing_file_is_not_overwritten(copy: Copy) -> None:
    file = "kernels/tiling/exercises/wide_solution.cu"
    copy.write(file, "mine\n")
    before = copy.files()
    done = copy.run("-m", "climb", "new", "exercise", "tiling/wide")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"climb new: error: {file} exists already\n"
    assert copy.files() == before


@pytest.mark.parametrize(
    "argv",
    [
        ["new", "chapter", "float4"], ["report", "--readme"], ["report", "--check"], ["figures"], ["address"],
        ["rehash", "--from", "HEAD"], ["speed", "--against", "HEAD"], ["keep-code"],
    ],
)  # fmt: skip
def test_an_installed_package_says_that_it_needs_a_checkout(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "IN_CHECKOUT", False)
    assert main(argv) == 1
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(f"climb {argv[0]}: ") and shown.err.count("\n") == 1
    assert shown.err.endswith(" needs a checkout of the repository; this is an installed package\n")
