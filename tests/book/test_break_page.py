"""``break.js`` in a browser: one box for the source, the choices and the outcome, used by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.browser import Browser, Page, serve

from climb import break_it, edit, load_ladder

pytestmark = pytest.mark.thorough

STATIC = Path(__file__).resolve().parents[2] / "book" / "_static"
STYLES = ("palette.css", "custom.css", "break.css")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page with two boxes, its styles and its script, without the rest of the book."""
    folder = tmp_path_factory.mktemp("break")
    for name in (*STYLES, "break.js"):
        (folder / name).write_bytes((STATIC / name).read_bytes())
    tiled = break_it(
        load_ladder("transpose")["tiled"], {"rows": 64, "cols": 64}, picture="shared load",
        edits=[
            edit("no barrier", "__syncthreads();", ""),
            edit("33 columns", "[kTile][kTile]", "[kTile][kTile + 1]"),
            edit("half", "kRows = 8", "kRows = 4", block=(32, 4)),
        ],
    )  # fmt: skip
    links = "".join(f'<link rel="stylesheet" href="{name}">' for name in STYLES)
    body = f"<main>{tiled.html}<p>Between.</p>{tiled.html}</main>"
    page = f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>Break</title>{links}'
    view = '<meta name="viewport" content="width=device-width">'
    (folder / "index.html").write_text(f"{page}{view}<body>{body}<script src='break.js'></script>", encoding="utf-8")
    with serve(folder) as url:
        yield url


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    opened = browser.page(width=390)
    opened.open(f"{address}/index.html")
    yield opened
    assert opened.complaints() == []
    opened.close()


def text(page: Page, selector: str) -> str:
    return page.run(f"document.querySelector('{selector}').innerText")


def test_choosing_by_keyboard_changes_source_and_outcome(page: Page) -> None:
    assert text(page, ".rl-break-outcome").startswith("Right: 4 sectors per global load")
    assert page.run("document.querySelectorAll('.rl-break-code:first-of-type .rl-ins').length") == 0
    page.run("document.querySelector('.rl-break-choices input').focus()")
    page.press("ArrowRight")
    assert text(page, ".rl-break-outcome").startswith("Stopped by the emulator: a race.")
    assert "__syncthreads();" in text(page, ".rl-break-code .rl-del")
    assert text(page, ".rl-break-code .rl-hit").split()[0] == "29", "the line of the message, in the edited source"
    page.press("ArrowRight")
    assert "with 1/32 of the wavefronts of shared loads" in text(page, ".rl-break-outcome")
    assert "tile[kTile][kTile + 1];" in text(page, ".rl-break-code .rl-ins")
    assert page.run("document.querySelector('.rl-break-outcome svg') !== null")
    page.press("ArrowRight")
    assert "dim3(32, 4)" in text(page, ".rl-break-launch .rl-ins") and "76 %" in text(page, ".rl-break-outcome")
    assert "The picture is the same as without the edit" in text(page, ".rl-break-outcome")
    page.press("ArrowRight")
    assert page.run("document.activeElement.matches(':checked')"), "arrows go round, and come back to the kernel itself"
    assert text(page, ".rl-break-outcome").startswith("Right: 4 sectors")


def test_boxes_of_a_page_are_apart_named_and_announced(page: Page) -> None:
    names = page.run("[...document.querySelectorAll('.rl-break-choices')].map(one => one.querySelector('input').name)")
    assert len(set(names)) == 2
    legends = page.run("[...document.querySelectorAll('fieldset legend')].map(one => one.textContent)")
    assert legends == ["Break it: choose an edit"] * 2
    assert page.run("document.querySelectorAll('.rl-break-outcome[aria-live=polite]').length") == 2
    page.run("document.querySelectorAll('.rl-break-choices')[1].querySelectorAll('input')[1].click()")
    assert text(page, ".rl-break-outcome").startswith("Right"), "the first box stays as it was"


def test_lines_are_numbered_as_in_the_edited_source(page: Page) -> None:
    page.run("document.querySelectorAll('.rl-break-choices input')[1].click()")
    rows = "[...document.querySelector('.rl-break-code').children]"
    shown = page.run(f"{rows}.map(row => parseInt(row.querySelector('b').textContent))")
    numbers = [n for n in shown if n is not None]
    first = load_ladder("transpose")["tiled"].source.split("\n").index("constexpr int kTile = 32;") + 1
    assert numbers == list(range(first, first + len(numbers)))


def test_page_of_a_phone_is_no_wider_than_the_phone(page: Page) -> None:
    for number in range(4):
        page.run(f"document.querySelectorAll('.rl-break-choices input')[{number}].click()")
        assert page.run("document.documentElement.scrollWidth") <= 390


def test_focus_is_seen_on_the_choice(page: Page) -> None:
    page.run("document.querySelector('.rl-break-choices input').focus()")
    page.press("ArrowRight")
    style = "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    assert page.run(style) == "solid"
