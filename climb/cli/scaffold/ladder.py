"""``climb new ladder``: a problem with one rung, complete and tested."""

from __future__ import annotations

from climb import paths
from climb.bench.registry import ladder_names
from climb.cli.errors import UsageError
from climb.cli.scaffold import names, planted, python_source, templates
from climb.cli.scaffold.changes import Changes, shown


def new_ladder(text: str) -> None:
    """Make the ladder ``CHAPTER/NAME``. Raises UsageError."""
    chapter, name = names.pair(text, "CHAPTER/NAME")
    chapter = names.find_chapter(chapter)
    if name in ladder_names():
        raise UsageError(f"there is a ladder '{name}' already")
    changes = Changes()
    folder = paths.KERNELS / chapter / name
    changes.make(folder / "__init__.py", templates.fill(templates.LADDER, name=name))
    changes.make(folder / "01_naive.cu", templates.fill(templates.NAIVE, name=name))
    by_hand = _plan_tests(changes, chapter, name)
    changes.write()
    print("\nNext:")
    for number, step in enumerate([*by_hand, *_next_steps(chapter, name)], 1):
        print(f"{number}. {step}")


def _plan_tests(changes: Changes, chapter: str, name: str) -> list[str]:
    """Plan the entries of the chapter's ``test_rungs.py``; return the text to add by hand instead, if any."""
    tests = planted.tests_of(chapter)
    fault = templates.fill(templates.FAULT, name=name)
    if not tests.exists():
        words = {"chapter": chapter, "name": name, "drawn": templates.SIZES, "plant": fault}
        changes.make(tests, templates.fill(templates.RUNG_TESTS, **words))
        return []
    added = planted.add_ladder(tests.read_text(encoding="utf-8"), name, templates.SIZES, fault)
    if added is None:
        return [f'add "{name}": {templates.SIZES} to SIZES and {fault} to PLANTED in {shown(tests)}']
    changes.change(tests, python_source.with_imports(added, "climb.emulator", {"OutOfBounds"}))
    return []


def _next_steps(chapter: str, name: str) -> list[str]:
    return [
        f"write the problem in kernels/{chapter}/{name}/__init__.py: arguments, reference, work, sizes; and its rung",
        f"climb new rung {name}/NAME makes the next rung",
        f".venv/bin/python -m pytest --thorough tests/kernels/{chapter}/test_rungs.py "
        "tests/kernels/test_every_ladder.py",
        f'show it in book/{names.page(chapter)}.ipynb with check_table(load_ladder("{name}")), both imported in the '
        f"first cell, without times until it is recorded; make run NOTEBOOK={names.page(chapter)}",
        "make report and make run NOTEBOOK=ladders list the ladder as pending",
        f"with a GPU: make record LADDER={name}, then make report",
    ]
