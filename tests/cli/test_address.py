"""The repository's address in the chapters: one setting, and a notebook that works where no clone is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from climb import paths
from climb.cli import main
from climb.cli.scaffold.first_cell import IN_CLONE, Address, first_cell, read_address, replaced, write_address

ROOT = Path(__file__).resolve().parents[2]
HUB = Address("https://github.com/someone/climb", "trunk")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("title: A book\n", Address()),
        ("repository:\n", Address()),
        ('repository:\n  url: ""\n  branch: main\n', Address()),
        ("repository:\n  url: https://github.com/someone/climb/\n  branch: trunk\n", HUB),
        ("repository:\n  url: https://github.com/someone/climb.git\n  branch: trunk\n", HUB),
        ("repository:\n  url: https://example.org/a/b\n", Address("https://example.org/a/b", "main")),
    ],
)
def test_address_is_read_from_the_configuration(tmp_path: Path, text: str, address: Address) -> None:
    (tmp_path / "_config.yml").write_text(text)
    assert read_address(tmp_path / "_config.yml") == address


def test_first_cell_names_an_address_only_where_there_is_one() -> None:
    assert first_cell(Address()) == f"import sys\n\n{IN_CLONE}"
    assert "git+https://github.com/someone/climb@trunk" in first_cell(HUB) and IN_CLONE in first_cell(HUB)
    compile(first_cell(HUB), "first cell", "exec")  # plain Python: no magic of a notebook


@pytest.mark.parametrize("before", [Address(), HUB, Address("https://example.org/x/y")])
@pytest.mark.parametrize("after", [Address(), HUB])
def test_one_address_replaces_another(before: Address, after: Address) -> None:
    assert replaced(first_cell(before) + "\nimport numpy\n", after) == first_cell(after) + "\nimport numpy\n"


def test_unknown_first_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin with"):
        replaced("import numpy\n", HUB)


def test_writing_an_address_changes_the_source_of_one_cell_only(tmp_path: Path) -> None:
    chapter = tmp_path / "a.ipynb"
    setup = new_code_cell(
        first_cell(Address()) + "\nannounce()", execution_count=1, metadata={"tags": ["nbval-ignore-output"]},
        outputs=[new_output("stream", name="stdout", text="running on the emulator, 3 µs\n")],
    )  # fmt: skip
    nbformat.write(new_notebook(cells=[new_markdown_cell("# A"), setup, new_code_cell("sys.path")]), chapter)
    before = chapter.read_bytes()
    assert not write_address(chapter, Address()) and chapter.read_bytes() == before
    assert write_address(chapter, HUB)
    changed, was = json.loads(chapter.read_bytes()), json.loads(before)
    assert "".join(changed["cells"][1].pop("source")) == first_cell(HUB) + "\nannounce()"
    del was["cells"][1]["source"]
    assert changed == was
    assert write_address(chapter, Address()) and chapter.read_bytes() == before


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one chapter, whose address is not written yet."""
    (tmp_path / "book").mkdir()
    (tmp_path / "_config.yml").write_text(f"repository: {{url: {HUB.url}, branch: {HUB.branch}}}\n")
    nbformat.write(new_notebook(cells=[new_code_cell(first_cell(Address()))]), tmp_path / "book" / "a.ipynb")
    nbformat.write(new_notebook(cells=[new_markdown_cell("# B")]), tmp_path / "book" / "b.ipynb")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


def test_command_writes_the_address_once(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["address", "--check"]) == 1
    assert "book/a.ipynb has another address than _config.yml; run: make address" in capsys.readouterr().err
    assert main(["address"]) == 0 and capsys.readouterr().out == "book/a.ipynb\n"
    assert main(["address", "--check"]) == 0
    assert main(["address"]) == 0 and "already" in capsys.readouterr().out


def test_command_names_the_chapter_that_it_cannot_change(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nbformat.write(new_notebook(cells=[new_code_cell("1 + 1")]), clone / "book" / "c.ipynb")
    assert main(["address"]) == 2
    assert "book/c.ipynb: the first code cell does not begin with" in capsys.readouterr().err


# A notebook on its own.


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Address:
    """A bare repository that holds the files of this checkout as they stand, changed and untracked ones too."""
    bare = tmp_path_factory.mktemp("published") / "climb.git"
    index = {**os.environ, "GIT_INDEX_FILE": str(bare.with_suffix(".index"))}
    git = ["git", "--git-dir", str(bare), "--work-tree", str(ROOT)]
    identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(bare)], check=True)
    for setting in ("core.compression", "pack.window"):  # all of it is read once, so packing it well does not pay
        subprocess.run(["git", "--git-dir", str(bare), "config", setting, "0"], check=True)
    packaged = [
        "pyproject.toml",
        "README.md",
        "LICENSE",
        ".gitignore",
        "climb",
        "kernels",
        "records",
        "book/sources.toml",
    ]
    for command in (["add", "--", *packaged], [*identity, "commit", "--quiet", "-m", "as it stands"]):
        subprocess.run([*git, *command], cwd=ROOT, env=index, check=True)
    return Address(f"file://localhost{bare}")  # pip wants a host


def environment(site: Path) -> dict[str, str]:
    """Variables with which Python finds ``climb`` nowhere, and pip installs into ``site``, from here alone.

    It leaves out the packages that the book depends on: the tests' own environment has them.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "WORKLOG"))}
    return clean | {
        "PYTHONPATH": str(site),
        "PIP_TARGET": str(site),
        "PIP_NO_COMPILE": "1",  # of hundreds of modules, the chapter imports some
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this one the other way round
        "PIP_CONFIG_FILE": os.devnull,
        "WORKLOG_TIMINGS": "record",
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


@pytest.mark.thorough
def test_downloaded_notebook_installs_the_book_and_runs(published: Address, tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "empty"
    site.mkdir()
    work.mkdir()

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command], cwd=work, env=environment(site), capture_output=True, text=True, check=False
        )

    assert "No module named 'climb'" in run("-c", "import climb").stderr
    shutil.copy(ROOT / "book" / "intro.ipynb", work)
    write_address(work / "intro.ipynb", published)
    execute = ("--execute", "--output", "executed", "intro.ipynb")
    done = run("-m", "nbconvert", "--log-level=ERROR", "--to", "notebook", *execute)
    assert done.returncode == 0, done.stderr[-3000:]
    executed = nbformat.read(work / "executed.ipynb", as_version=4)
    said = "".join(output.get("text", "") for cell in executed.cells for output in cell.get("outputs", []))
    assert "running on " in said
    assert (site / "climb" / "_book" / "kernels").is_dir()
