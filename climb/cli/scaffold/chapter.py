"""``climb new chapter``: a page with the sections of a chapter, its folder of kernels, its tests."""

from __future__ import annotations

import contextlib
import io
import re

from climb import paths
from climb.cli.errors import UsageError
from climb.cli.scaffold import exercise, names, notebook, templates
from climb.cli.scaffold.changes import Changes
from climb.cli.scaffold.first_cell import first_cell, read_address

#: The exercise that a new chapter begins with.
FIRST_EXERCISE = "neighbours"


def new_chapter(name: str, part: str | None) -> None:
    """Make the chapter ``my-chapter`` in a part of the book. Raises UsageError."""
    page = names.page(name)
    chapter = names.check_name(name.replace("-", "_"))
    changes = Changes()
    toc = paths.ROOT / "_toc.yml"
    changes.change(toc, listed(toc.read_text(encoding="utf-8"), page, part))
    words = {"page": page, "chapter": chapter, "title": _title(page), "name": FIRST_EXERCISE}
    changes.make(paths.ROOT / "book" / f"{page}.ipynb", notebook.text(_cells(words)))
    init = paths.KERNELS / chapter / "__init__.py"
    changes.make(init, f'"""What the chapter ``book/{page}.ipynb`` runs."""\n')
    exercise.plan(changes, chapter, FIRST_EXERCISE)
    tests = paths.ROOT / "tests" / "kernels" / chapter / "test_chapter.py"
    changes.make(tests, templates.fill(templates.CHAPTER_TEST, **words))
    changes.write()
    exercise.add_cells(chapter, FIRST_EXERCISE)
    print("\nNext:")
    for number, step in enumerate(_next_steps(page, chapter), 1):
        print(f"{number}. {step}")


def listed(toc: str, page: str, part: str | None) -> str:
    """The text of ``_toc.yml`` with the page at the end of a part (None: the last but one). Raises UsageError."""
    parts = [(match[1].strip(), match.start()) for match in re.finditer(r"(?m)^ *- caption: (.*)$", toc)]
    captions = [caption for caption, _ in parts]
    wanted = part if part is not None else captions[-2]
    if wanted not in captions:
        raise UsageError(f"_toc.yml has no part '{wanted}'; its parts are {', '.join(captions)}")
    starts = [*(start for _, start in parts), len(toc)]
    at = captions.index(wanted)
    last = list(re.finditer(r"(?m)^( *- file: ).*\n?", toc[starts[at] : starts[at + 1]]))[-1]
    end = starts[at] + last.end()
    before = toc[:end] if toc[:end].endswith("\n") else toc[:end] + "\n"
    return f"{before}{last[1]}book/{page}\n{toc[end:]}"


def _title(page: str) -> str:
    return page.replace("-", " ").capitalize()


def _cells(words: dict[str, str]) -> list[notebook.Cell]:
    """The page without its exercise: the title, the first cell, then the sections."""
    from climb import announce

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        announce()
    sections = [notebook.markdown(name, templates.fill(text, **words)) for name, text in templates.CHAPTER_SECTIONS]
    source = first_cell(read_address(paths.ROOT / "_config.yml")) + templates.FIRST_CELL
    first = notebook.code("setup", source, prints=printed.getvalue(), tags=("nbval-ignore-output", "hide-input"))
    return [sections[0], first, *sections[1:]]


def _next_steps(page: str, chapter: str) -> list[str]:
    return [
        f"climb new ladder {chapter}/NAME makes a ladder; climb new exercise {chapter}/NAME another exercise",
        f"write book/{page}.ipynb: a card, the rungs, an exhibit in kernels/{chapter}/exhibits, the exercises",
        f"replace the exercise {FIRST_EXERCISE} in kernels/{chapter}/exercises, or rename it",
        f"say in tests/kernels/{chapter}/test_chapter.py what the text claims of kernels",
        f'mark its findings in book/findings.toml, and show where_it_holds("{page}") before the last section, '
        "and below it what you expect of a second GPU, with two_gpus_table",
        f"make run NOTEBOOK={page}",
        f".venv/bin/python -m pytest tests/kernels/{chapter} tests/bench/test_exercise.py tests/book/test_notebooks.py",
    ]
