"""``climb new chapter``: a page with the sections of a chapter, its folder of kernels, its tests."""

from __future__ import annotations

import contextlib
import io
import re

import msgspec

from climb import paths
from climb.cli.errors import UsageError
from climb.cli.scaffold import exercise, names, notebook, templates
from climb.cli.scaffold.changes import Changes, shown
from climb.cli.scaffold.first_cell import first_cell, read_address
from climb.display.where_it_holds import FINDINGS, Finding, findings_table

#: The first exercise of a new chapter.
FIRST_EXERCISE = "neighbours"
#: The first findings of a new chapter, in a part whose chapters say where their findings hold.
FIRST_FINDINGS = 3
PARTS_WITH_FINDINGS = ("Techniques", "Worklogs", "Hopper", "Beyond")


def new_chapter(name: str, part: str | None) -> None:
    """Make the chapter ``my-chapter`` in a part of the book. Raises UsageError."""
    page = names.page(name)
    chapter = names.check_chapter(name)
    for taken in (paths.ROOT / "book" / f"{page}.{ending}" for ending in ("ipynb", "md")):
        if taken.exists():
            raise UsageError(f"{shown(taken)} exists already")
    changes = Changes()
    toc = paths.ROOT / "_toc.yml"
    in_part, contents = listed(toc.read_text(encoding="utf-8"), page, part)
    changes.change(toc, contents)
    words = {"page": page, "chapter": chapter, "title": _title(page), "name": FIRST_EXERCISE}
    findings: tuple[Finding, ...] = ()
    if in_part in PARTS_WITH_FINDINGS:
        finding = templates.fill(templates.FINDING, page=page)
        changes.change(FINDINGS, FINDINGS.read_text(encoding="utf-8") + FIRST_FINDINGS * finding)
        findings = FIRST_FINDINGS * msgspec.toml.decode(finding, type=dict[str, tuple[Finding, ...]])[page]
    front = paths.ROOT / "book" / "intro.ipynb"
    before = re.findall(r"book/([\w-]+)", contents[: contents.index(f"book/{page}\n")])
    changes.change(front, notebook.text(linked(notebook.read(front), before, page)))
    changes.make(paths.ROOT / "book" / f"{page}.ipynb", notebook.text(_cells(words, findings)))
    init = paths.KERNELS / chapter / "__init__.py"
    changes.make(init, f'"""The code that the chapter ``book/{page}.ipynb`` runs."""\n')
    exercise.plan(changes, chapter, FIRST_EXERCISE)
    tests = paths.ROOT / "tests" / "kernels" / chapter / "test_chapter.py"
    changes.make(tests, templates.fill(templates.CHAPTER_TEST, **words))
    changes.write()
    exercise.add_cells(chapter, FIRST_EXERCISE)
    print("\nNext:")
    for number, step in enumerate(_next_steps(page, chapter), 1):
        print(f"{number}. {step}")


def listed(toc: str, page: str, part: str | None) -> tuple[str, str]:
    """Return a part (None: the last but one), and the text of ``_toc.yml`` with the page at its end. Raises
    UsageError."""
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
    return wanted, f"{before}{last[1]}book/{page}\n{toc[end:]}"


def linked(front: list[notebook.Cell], before: list[str], page: str) -> list[notebook.Cell]:
    """Return the cells of the front page with a link to a new page, behind the last of the pages `before` that has one
    in a list."""
    link = f"- [{_title(page)}]({page}.ipynb), {{minutes}}`{page}`: to be written.\n"
    for name in reversed(before):
        item = re.compile(rf"(?m)^- \[[^]]*\]\({name}\.(?:ipynb|md)\).*\n(?:  .*\n)*")
        for at, cell in enumerate(front):
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and (found := item.search(source)):
                text = notebook.markdown(cell["id"], source[: found.end()] + link + source[found.end() :])
                return [*front[:at], text, *front[at + 1 :]]
    raise UsageError("book/intro.ipynb has no list that links to the chapters")


def _title(page: str) -> str:
    return page.replace("-", " ").capitalize()


def _cells(words: dict[str, str], findings: tuple[Finding, ...]) -> list[notebook.Cell]:
    """Return the page without its exercise: the title, the first cell, then the sections, two of them with cells."""
    from climb import announce

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        announce()
    source = first_cell(read_address(paths.ROOT / "_config.yml")) + templates.FIRST_CELL
    holds = f'from climb import where_it_holds\n\nwhere_it_holds("{words["page"]}")'
    standalone = ("standalone",)
    after = {
        "title": notebook.code("setup", source, prints=printed.getvalue(), tags=("nbval-ignore-output", "hide-input")),
        "first-rung": notebook.code("whole", templates.WHOLE_KERNEL, prints="right: True\n", tags=standalone),
        "timed-text": notebook.code("timed", templates.ITS_TIME, prints="twice: nan µs\n", tags=standalone),
        "where-this-holds": notebook.code("findings", holds, result=findings_table(findings), tags=("remove-input",)),
    }
    cells = []
    for name, text in templates.CHAPTER_SECTIONS:
        if findings or name != "where-this-holds":
            cells += [notebook.markdown(name, templates.fill(text, **words)), *([after[name]] if name in after else [])]
    return cells


def _next_steps(page: str, chapter: str) -> list[str]:
    return [
        f"climb new ladder {chapter}/NAME makes a ladder; climb new exercise {chapter}/NAME another exercise",
        f"write book/{page}.ipynb: a card, the rungs, a kernel in the two standalone cells, an exhibit in "
        f"kernels/{chapter}/exhibits, the exercises",
        f"replace the exercise {FIRST_EXERCISE} in kernels/{chapter}/exercises, or rename it",
        f"say in tests/kernels/{chapter}/test_chapter.py what the text claims of kernels",
        f"mark its findings at the end of book/findings.toml: {FIRST_FINDINGS} to 6, one sentence each; "
        "with a ladder's times, say below them what you expect of a second GPU: two_gpus_table",
        "say on the front page, book/intro.ipynb, what the chapter is about",
        f"make run NOTEBOOK={page}",
        f".venv/bin/python -m pytest tests/kernels/{chapter} tests/bench/test_exercise.py "
        f"tests/book -k '{chapter} or {page}'",
    ]
