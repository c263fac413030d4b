"""The playgrounds in a browser: driven by keys, on a phone, in both themes; and which pages load them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tools.browser import Browser, Page, serve

from climb import playground

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book" / "_static"
KINDS = ("sectors", "banks", "occupancy", "roofline")
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"


def extension() -> Any:
    """The Sphinx extension that adds the scripts."""
    spec = importlib.util.spec_from_file_location("playground_pages", ROOT / "book/_extensions/playground_pages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A page with the four playgrounds and the book's styles, and nothing else."""
    folder = tmp_path_factory.mktemp("play")
    (folder / "playgrounds.js").write_text(extension().bundle(), encoding="utf-8")
    styles = "".join(
        f"<style>{(STATIC / name).read_text(encoding='utf-8')}</style>"
        for name in ("palette.css", "custom.css", "play/play.css")
    )
    body = "\n".join(playground(kind).html for kind in KINDS)
    (folder / "a.html").write_text(
        '<!doctype html><html data-theme="light"><meta charset="utf-8"><title>Play</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f'{styles}<script defer src="playgrounds.js"></script><body class="bd-article">{body}',
        encoding="utf-8",
    )
    with serve(folder) as address:
        yield f"{address}/a.html"


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    one = browser.page(width=1280)
    one.open(site)
    one.run(SETTLED)
    yield one
    assert one.complaints() == []
    one.close()


def said(page: Page, kind: str) -> str:
    page.run(SETTLED)
    return str(page.run(f"document.querySelector('[data-play={kind}] .rl-play-say').textContent"))


def expected(kind: str, **state: Any) -> str:
    return repr(playground(kind, **state)).splitlines()[-1]


def retype(page: Page, kind: str, name: str, text: str) -> None:
    """Focus an input of a playground, select its text and type another, key by key."""
    page.run(f"(i => {{ i.focus(); i.select(); }})(document.querySelector('[data-play={kind}] [data-name={name}]'))")
    for key in text:
        if key.isalnum():
            page.press(key)
        else:  # its key is another on each keyboard
            page.call("Input.insertText", text=key)


@pytest.mark.parametrize("kind", KINDS)
def test_script_says_what_the_page_said_without_it(page: Page, kind: str) -> None:
    assert said(page, kind) == expected(kind)
    assert page.run(f"document.querySelector('[data-play={kind}] .rl-play-say').getAttribute('aria-live')") == "polite"
    unnamed = page.run(
        f"[...document.querySelectorAll('[data-play={kind}] :is(input, select, button)')]"
        ".filter(e => !e.labels?.length && !e.ariaLabel && !e.textContent).length"
    )
    assert unnamed == 0


def test_typed_expression_is_computed_and_a_bad_one_keeps_text_and_picture(page: Page) -> None:
    retype(page, "sectors", "index", "lane*4+1")
    assert said(page, "sectors") == expected("sectors", index="lane*4+1")
    cells = "document.querySelectorAll('[data-play=sectors] rect.rl-play-used').length"
    before = page.run(cells)
    retype(page, "sectors", "index", "lane*(4+1")
    assert said(page, "sectors").startswith(
        "Expected ')' for the '(' at character 6, found the end, at character 10: lane*"
    )
    field = "document.querySelector('[data-play=sectors] [data-name=index]')"
    assert page.run(f"[{field}.value, {field}.getAttribute('aria-invalid')]") == ["lane*(4+1", "true"]
    assert page.run(cells) == before
    page.call("Input.insertText", text=")")
    assert said(page, "sectors") == expected("sectors", index="lane*(4+1)")
    assert page.run(f"{field}.getAttribute('aria-invalid')") is None


def test_arrow_keys_move_a_slider_and_padding_ends_the_conflict(page: Page) -> None:
    assert said(page, "banks") == expected("banks")
    page.run("document.querySelector('[data-play=banks] input[type=range]').focus()")
    page.press("ArrowRight")
    assert said(page, "banks") == expected("banks", pad=1)
    page.press("ArrowLeft")
    page.run("document.querySelectorAll('[data-play=banks] input[type=range]')[1].focus()")
    for bits in range(1, 6):
        page.press("ArrowRight")
        assert said(page, "banks") == expected("banks", swizzle=bits)


def test_keys_switch_a_lane_off_and_keep_the_focus(page: Page) -> None:
    lane = "document.activeElement.getAttribute('aria-label')"
    page.run("document.querySelector('[data-play=sectors] [role=checkbox]').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.run(lane) == "lane 2"
    page.press(" ")
    assert said(page, "sectors") == expected("sectors", active="0xfffffffbu >> lane & 1")
    assert page.run(f"[{lane}, document.activeElement.getAttribute('aria-checked')]") == ["lane 2", "false"]
    page.press(" ")
    assert said(page, "sectors") == expected("sectors")


def test_tab_reaches_every_control_of_a_playground_once(page: Page) -> None:
    page.run("document.querySelector('[data-play=sectors] [data-name=active]').focus()")
    reached = []
    for _ in range(40):
        if page.run("document.activeElement.closest('[data-play]')?.dataset.play") != "sectors":
            break
        reached.append(page.run("document.activeElement.outerHTML.slice(0, 60)"))
        page.press("Tab")
    # Two expressions, seven examples, the width, a slider with its number, the further settings, and the lanes as one.
    assert len(reached) == 14, reached


def test_occupancy_follows_the_sliders_and_the_staircase_the_last_one(page: Page) -> None:
    page.run("document.querySelectorAll('[data-play=occupancy] input[type=range]')[1].focus()")
    page.press("ArrowRight")
    assert said(page, "occupancy") == expected("occupancy", threads=288)
    assert "by threads per block" in page.run("document.querySelector('[data-play=occupancy] svg').textContent")


def test_choice_of_a_problem_sets_the_roofline(page: Page) -> None:
    page.run("(s => { s.value = 'sgemm'; s.dispatchEvent(new Event('change')) })"
             "(document.querySelector('[data-play=roofline] select'))")  # fmt: skip
    assert said(page, "roofline") == expected("roofline", preset="sgemm")
    page.run("document.querySelector('[data-play=roofline] input[type=range]').focus()")
    page.press("ArrowLeft")
    page.run(SETTLED)
    assert page.run("document.querySelector('[data-play=roofline] select').value") == "", "now a problem of your own"


def test_link_opens_the_state_that_it_was_copied_from(browser: Browser, site: str, page: Page) -> None:
    retype(page, "banks", "row", "lane / 2")
    page.run("document.querySelector('[data-play=banks] .rl-play-link').click()")
    page.run(SETTLED)
    link = page.run("location.href")
    assert "#play=banks&" in link
    other = browser.page()
    other.open(link)
    assert said(other, "banks") == expected("banks", row="lane / 2")
    assert said(other, "sectors") == expected("sectors")
    other.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(browser: Browser, site: str, theme: str) -> None:
    page = browser.page(width=390, scheme=theme)
    page.open(site)
    page.run(f"document.documentElement.dataset.theme = '{theme}'")
    retype(page, "sectors", "index", "lane * 32 + (lane < 16 ? lane : 2 * lane + 1)")
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    page.run(SETTLED)
    assert page.run("document.documentElement.scrollWidth") <= 390
    wide = page.run("[...document.querySelectorAll('.rl-play *')].filter(e => e.getBoundingClientRect().right > 390)"
                    ".map(e => e.outerHTML.slice(0, 80))")  # fmt: skip
    assert wide == []
    page.close()


# Which pages load them.


def test_only_pages_with_a_playground_load_the_scripts(tmp_path: Path) -> None:
    loaded: list[str] = []
    app = SimpleNamespace(
        outdir=tmp_path,
        add_js_file=lambda name, **_: loaded.append(name),
        add_css_file=lambda name: loaded.append(name),
    )
    add = extension().add_scripts
    add(app, "a", "page.html", {"body": "<p>no such thing</p>"}, None)
    add(app, "search", "search.html", {}, None)
    assert loaded == [] and not list(tmp_path.rglob("*.js"))
    add(app, "b", "page.html", {"body": playground("sectors").html}, None)
    assert loaded == ["playgrounds.js", "play/play.css"]
    script = (tmp_path / "_static" / "playgrounds.js").read_text(encoding="utf-8")
    assert script.startswith("(globalThis.RLPlay") and '"nvidia-h200"' in script
    assert all((STATIC / "play" / name).exists() for name in extension().SCRIPTS)
    assert len(script) < 50_000
