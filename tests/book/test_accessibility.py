"""Everyone can use the pages: axe finds nothing, terms explain themselves, wide tables show that they go on."""

from __future__ import annotations

import json
from pathlib import Path

import axe_core_python
import pytest
from tools import site
from tools.browser import Browser, Page

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

#: One element for each mixture of colours, sizes and grounds that has text: the contrast of the others is the same.
_SAMPLES = r"""(() => {
  const seen = new Map();
  for (const one of document.querySelectorAll("body *")) {
    const says = [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    if (!says || !one.checkVisibility()) continue;
    const looks = getComputedStyle(one), grounds = [];
    for (let at = one; at; at = at.parentElement) {
      const ground = getComputedStyle(at).backgroundColor;
      if (ground === "rgba(0, 0, 0, 0)") continue;
      grounds.push(ground);
      if (!/rgba|\//.test(ground)) break;
    }
    const size = Math.round(parseFloat(looks.fontSize));
    const key = [looks.color, looks.opacity, size, looks.fontWeight, grounds].join("|");
    if (!seen.has(key)) seen.set(key, one);
  }
  return [...seen.values()];
})()"""
_TOLD = "found => found.violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.target} ${n.html.slice(0, 120)}`))"


#: The thousands of coloured words of listings and the parts of formulas take axe most of its time. They have nothing to
#: check but the contrast of code, which test_browser.py computes.
_LESS = """document.querySelectorAll("pre, math").forEach(one => {
  if (one.children.length) one.replaceChildren(one.localName === "pre" ? "code" : "");
})"""


def findings(page: Page) -> list[str]:
    """Return what axe finds on a page that is open: contrast in both themes, everything else once."""
    page.run(AXE + ";0")
    page.run(_LESS)
    found = []
    for theme in ("light", "dark"):
        page.run(f"document.documentElement.dataset.theme = {theme!r}")
        only = "{resultTypes: ['violations'], runOnly: ['color-contrast']}"
        told = page.run(f"axe.run({{include: {_SAMPLES}}}, {only}).then({_TOLD})")
        found += [f"{theme}: {one}" for one in told]
    rest = "{resultTypes: ['violations'], rules: {'color-contrast': {enabled: false}}}"
    return found + page.run(f"axe.run(document, {rest}).then({_TOLD})")


@pytest.mark.thorough
def test_axe_finds_nothing_on_any_page(book: Path, browser: Browser, address: str) -> None:
    page = browser.page()
    browser.timeout = 120.0  # axe reads a whole chapter in one call
    found = {}
    names = [path.relative_to(book).as_posix() for path in site.sample(book)]
    for name in [*names, "search.html", "genindex.html", "404.html"]:
        page.open(f"{address}/{name}")
        found[name] = findings(page)
    page.close()
    browser.timeout = 30.0
    assert {name: told for name, told in found.items() if told} == {}


def test_axe_finds_what_is_wrong(browser: Browser) -> None:
    text = '<!doctype html><html lang="en"><title>t</title><main><h1>h</h1><img src="x"><p style="color:#ccc">pale</p>'
    page = browser.page()
    page.call("Page.navigate", url="about:blank")
    page.run(f"document.write({json.dumps(text)}); document.close()")
    told = " ".join(findings(page))
    page.close()
    assert "color-contrast" in told and "image-alt" in told


_CARD = (
    "(() => { const card = document.getElementById('term-card'); return card && !card.hidden && card.innerText; })()"
)
_SOON = "new Promise(done => { const end = Date.now() + 5000; const look = () => %s || Date.now() > end ? done(1) : " \
        "setTimeout(look, 20); look(); })"  # fmt: skip


@pytest.fixture
def chapter(browser: Browser, address: str):
    """A chapter with terms, on a phone."""
    page = browser.page(width=390)
    page.open(f"{address}/book/bank-conflicts.html")
    yield page
    page.close()


def test_term_shows_its_definition_by_key_and_escape_closes_it(chapter: Page) -> None:
    link = "document.querySelector('a[href*=\"#term-bank-conflict\"]')"
    chapter.press("Tab")
    chapter.run(f"{link}.focus()")
    chapter.run(_SOON % _CARD)
    assert chapter.run(_CARD).startswith("bank conflict\n") and "-way conflict takes" in chapter.run(_CARD)
    assert chapter.run(f"{link}.getAttribute('aria-describedby')") == "term-card"
    box = chapter.run("JSON.stringify(document.getElementById('term-card').getBoundingClientRect())")
    assert json.loads(box)["left"] >= 0 and json.loads(box)["right"] <= 390
    chapter.press("Escape")
    assert chapter.run(_CARD) is False
    assert chapter.run(f"{link}.hasAttribute('aria-describedby')") is False


def test_first_tap_on_a_term_shows_its_card_and_the_second_follows_it(chapter: Page) -> None:
    link = "document.querySelector('a[href*=\"#term-bank-conflict\"]')"
    tap = f"{link}.dispatchEvent(new PointerEvent('pointerdown', {{pointerType: 'touch', bubbles: true}})), " \
          f"{link}.dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true}}))"  # fmt: skip
    assert chapter.run(tap) is False  # the link was not followed
    chapter.run(_SOON % _CARD)
    assert chapter.run(_CARD).startswith("bank conflict")
    assert chapter.run(f"window.addEventListener('click', event => event.preventDefault()), ({tap})") is False
    assert chapter.run("location.pathname").endswith(("bank-conflicts.html", "glossary.html"))


def test_wide_table_on_a_phone_fades_at_its_edge_and_scrolls_by_key(chapter: Page) -> None:
    wide = "[...document.querySelectorAll('.rl-more-right')]"
    assert chapter.run(f"{wide}.length") > 0
    assert chapter.run(f"{wide}.every(one => one.tabIndex === 0 && getComputedStyle(one).maskImage !== 'none')")
    first = f"(window.box ??= {wide}[0])"
    chapter.run(f"{first}.scrollLeft = 1e5")
    chapter.run(_SOON % f"!{first}.classList.contains('rl-more-right')")
    assert chapter.run(f"[...{first}.classList]").count("rl-more-left") == 1


def test_no_table_is_wider_than_the_text_at_1280(book: Path, browser: Browser, address: str) -> None:
    page = browser.page(width=1280)
    wide = {}
    for path in site.few(book):
        page.open(f"{address}/{path.relative_to(book).as_posix()}")
        wide[path.stem] = page.run(
            "[...document.querySelectorAll('.rl-more-right')].filter(one => one.querySelector('table'))"
            ".map(one => one.innerText.slice(0, 60))"
        )
    page.close()
    assert {name: tables for name, tables in wide.items() if tables} == {}
