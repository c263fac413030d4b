"""The built pages in a browser. The first tests hold the browser to a small page, so that the others can fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import notebooks, site
from tools.browser import Browser, BrowserError, Page, serve
from tools.samples import FIRST, SECOND, rung
from tools.thorough import thorough

from climb.display.cell_output import together
from climb.display.listings import diff, source

ROOT = Path(__file__).resolve().parents[2]
#: All pages with `--thorough`, as CI has it; else a sample, for a browser needs a second to lay a chapter out twice.
PAGES = [
    name if name in site.FEW else thorough(name)
    for name in (file.removeprefix("book/") for file in notebooks.toc_files(ROOT / "_toc.yml"))
]

SMALL = """<!doctype html><meta name="viewport" content="width=device-width"><title>A page</title>
<link rel="icon" href="data:,"><img src="dot.svg" alt="a dot">
<style>body { margin: 0 } pre { overflow: auto } @media (prefers-color-scheme: dark) { body { color: white } }</style>
<pre>{line}</pre><script>console.error("two", 3); document.onkeydown = e => { document.title = e.key }; gone()</script>
""".replace("{line}", "x" * 200)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory):
    """The address of a small page with a line that is too long, a picture, and a script that fails."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "a.html").write_text(SMALL, encoding="utf-8")
    (folder / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>', encoding="utf-8")
    with serve(folder) as url:
        yield f"{url}/a.html"


def test_page_is_measured_at_the_size_and_in_the_colours_asked_for(browser: Browser, small: str) -> None:
    page = browser.page(width=390, scheme="dark")
    page.open(small)
    assert page.run("[innerWidth, document.querySelector('pre').clientWidth]") == [390, 390]
    assert page.run("document.querySelector('pre').scrollWidth") > 390
    assert page.run("getComputedStyle(document.body).color") == "rgb(255, 255, 255)"
    page.resize(1280)
    page.colours("light")
    assert page.run("document.querySelector('pre').clientWidth") == 1280
    assert page.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    page.close()


def test_requests_complaints_and_keys_of_a_page_are_reported(browser: Browser, small: str) -> None:
    page = browser.page(cache=False)
    page.open(small)
    fetched = {one.url.rsplit("/", 1)[-1]: one for one in page.requests() if one.url.startswith("http")}
    assert set(fetched) == {"a.html", "dot.svg"}
    assert fetched["a.html"].status == 200 and fetched["a.html"].bytes > len(SMALL)
    said, failed = page.complaints()
    assert said == "two 3" and "gone is not defined" in failed
    page.press("Tab")
    assert page.run("document.title") == "Tab"
    page.close()


def test_another_host_and_a_failing_script_are_errors(browser: Browser, small: str) -> None:
    page = browser.page()
    with pytest.raises(BrowserError, match="ERR_NAME_NOT_RESOLVED"):
        page.open("http://example.org/")
    page.open(small)
    with pytest.raises(BrowserError, match="nowhere is not defined"):
        page.run("nowhere()")
    page.close()


def test_picture_of_a_page_is_written(browser: Browser, small: str, tmp_path: Path) -> None:
    page = browser.page(width=390)
    page.open(small)
    page.screenshot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    page.close()


# All pages, with everything unfolded.

UNFOLD = "document.querySelectorAll('.bd-article details').forEach(one => { one.open = true })"
#: The boxes of code, listings, differences and outputs that are wider than what is seen of them.
WIDE = """(() => {
  const boxes = document.querySelectorAll(".bd-article :is(pre, .rl-source, .rl-diff, .cell_output, .output)");
  return [...boxes].filter(box => box.clientWidth && box.scrollWidth > box.clientWidth + 1)
    .map(box => [box.tagName, box.className, box.scrollWidth, box.clientWidth, box.textContent.slice(0, 80)].join(" "));
})()"""
#: The boxes of code that a phone cannot show whole and that do not say so, or say so without reason.
SILENT = """[...document.querySelectorAll(".bd-article .highlight pre")].filter(box => {
  const wide = box.scrollWidth > box.clientWidth + 1;
  const said = box.classList.contains("rl-goes-on") && getComputedStyle(box).maskImage.includes("gradient")
    && box.tabIndex === 0 && box.getAttribute("role") === "region" && !!box.getAttribute("aria-label");
  return box.clientWidth && (wide ? !said : box.tabIndex === 0 || box.hasAttribute("role"));
}).map(box => box.textContent.slice(0, 80))"""


@pytest.fixture(scope="module")
def reader(browser: Browser, address: str) -> Iterator[Page]:
    """A page of the browser, used for one page of the book after the other."""
    page = browser.page()
    yield page
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_page_clips_no_code_on_a_desktop_and_says_where_it_goes_on_on_a_phone(
    reader: Page, address: str, name: str
) -> None:
    reader.open("about:blank")  # the page before need not be laid out again
    reader.resize(1280)
    reader.open(f"{address}/book/{name}.html")
    reader.run(UNFOLD)
    reader.settle()
    assert reader.run(WIDE) == []
    assert reader.run("document.documentElement.scrollWidth") <= 1280
    reader.resize(390)
    assert reader.run("document.documentElement.scrollWidth") == 390
    assert reader.run(SILENT) == []


# Listings in a page of the book: what a chapter shows, put into a page that has none.

LONG = "    const float value = " + " + ".join(f"some_rather_long_name[{n}]" for n in range(8)) + ";"
OLDER = rung("first", FIRST.replace("{\n", "{\n" + LONG.replace("value", "older") + "\n"))
NEWER = rung("second", SECOND.replace("{\n", "{\n" + LONG + "\n"), OLDER)
SHOWN = together([source(NEWER, lines=(3, 7)), diff(NEWER)]).html
#: Clicks the button beside a box, and returns what is copied.
COPY = """(box => new Promise(done => {
  document.addEventListener("copy", event => done(event.target.value), { once: true });
  box.parentElement.querySelector("button.copybtn").click();
}))"""


@pytest.fixture
def listings(browser: Browser, address: str) -> Iterator[Page]:
    """A page of the book that shows an excerpt and a difference with long lines."""
    page = browser.page()
    put = """document.addEventListener("readystatechange", () => {
      if (document.readyState === "interactive" && document.querySelector(".bd-article"))
        document.querySelector(".bd-article").insertAdjacentHTML("beforeend", %s);
    })"""
    page.call("Page.addScriptToEvaluateOnNewDocument", source=put % json.dumps(SHOWN))
    page.open(f"{address}/book/bibliography.html")
    page.wait_until("document.querySelectorAll('.bd-article button.copybtn').length >= 4")
    yield page
    page.close()


def test_long_line_hangs_below_its_start_with_a_mark(listings: Page) -> None:
    assert listings.run(WIDE) == []
    hanging = listings.run(
        """[...document.querySelectorAll(".rl-source .rl-hang")].filter(line => line.clientWidth).map(line => {
          const range = document.createRange(), start = line.getBoundingClientRect().left;
          range.selectNodeContents(line);
          const lefts = [...range.getClientRects()].map(rect => Math.round(rect.left - start));
          const mark = getComputedStyle(line, "::after").content;
          return [line.textContent, Math.min(...lefts), lefts.at(-1) > 60, mark.includes("\u21b3")];
        })"""
    )
    assert hanging == [["5  " + LONG + "\n", 0, True, True]]
    listings.run("document.querySelectorAll('pre').forEach(box => { box.style.whiteSpace = 'pre' })")
    assert listings.run(WIDE), "a box that does not wrap must be found"


def test_copy_of_a_listing_has_no_line_numbers_and_of_a_difference_no_signs(listings: Page) -> None:
    lines = NEWER.source.split("\n")
    assert listings.run(f"{COPY}(document.querySelector('.rl-source pre'))") == "\n".join(lines[2:7])
    whole = listings.run(f"{COPY}(document.querySelector('.rl-whole pre'))")
    assert whole == NEWER.source.rstrip("\n")
    shown = listings.run(f"{COPY}(document.querySelector('.rl-diff pre'))").split("\n")
    assert LONG in shown and "    __shared__ float tile[kTile + 1];  // a < b" in shown
    assert [line for line in shown if line not in lines] == []


def test_selected_listing_has_one_line_feed_a_line(listings: Page) -> None:
    selected = listings.run("""(() => {
      getSelection().selectAllChildren(document.querySelector(".rl-diff pre"));
      return getSelection().toString();
    })()""")
    lines = selected.rstrip("\n").split("\n")
    assert LONG in lines and "" not in lines


def test_hint_of_a_box_goes_when_its_end_is_seen(listings: Page) -> None:
    listings.resize(390)
    box = "document.querySelector('.rl-diff pre')"
    assert listings.run(f"{box}.scrollWidth > {box}.clientWidth")
    assert listings.run(f"[{box}.className, {box}.getAttribute('role')]") == ["rl-goes-on", "region"]
    listings.run(f"{box}.focus()")
    listings.press("ArrowRight")
    listings.wait_until(f"{box}.classList.contains('rl-came-from')")
    listings.run(f"{{ {box}.scrollLeft = 1e6 }}")
    listings.wait_until(f"{box}.className === 'rl-came-from'")
    listings.resize(1280)
    assert listings.run(f"[{box}.className, {box}.hasAttribute('tabindex')]") == ["", False]


CONTRAST = """(() => {
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const linear = v => v <= 0.04045 * 255 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = new Map();
  for (const node of document.querySelectorAll(".bd-article :is(pre, pre *, .rl-title, .rl-title *, summary)")) {
    const own = [...node.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim());
    if (!own || !node.getClientRects().length) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = `${node.parentElement.className} > ${node.tagName}.${node.className}`;
    if (ratio < 4.5) poor.set(name, [ratio, node.textContent.slice(0, 30)]);
  }
  return [...poor];
})()"""


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_has_the_contrast_that_wcag_asks_for(listings: Page, reader: Page, address: str, scheme: str) -> None:
    for page in (listings, reader):
        page.resize(1280)
        page.colours(scheme)
        if page is reader:
            page.open(f"{address}/book/light-speed.html")
        page.run(UNFOLD)
        page.settle()
        assert page.run("document.documentElement.dataset.theme") == scheme
        assert page.run(CONTRAST) == []
    listings.run("document.querySelector('.rl-diff .rl-add').style.color = '#888'")
    assert listings.run(CONTRAST), "a faint line must be found"


def test_cuda_in_a_python_string_is_highlighted_as_cpp(reader: Page, address: str) -> None:
    reader.open(f"{address}/book/light-speed.html")
    kinds = reader.run("""[...document.querySelectorAll(".cell_input span")]
      .filter(one => one.textContent === "__global__").map(one => one.className)""")
    assert kinds and set(kinds) == {"kr"}


def test_switch_unfolds_all_python_and_is_remembered(reader: Page, address: str) -> None:
    folds = "[...document.querySelectorAll('details.hide.above-input')].map(one => one.open)"
    switch = "document.querySelector('.rl-python-switch input')"
    reader.open(f"{address}/book/emulator.html")
    count = len(reader.run(folds))
    assert count >= 3 and reader.run(folds) == [False] * count
    reader.run(f"{switch}.focus()")
    reader.press(" ")
    assert reader.run(folds) == [True] * count
    reader.open(f"{address}/book/emulator.html")
    assert reader.run(folds) == [True] * count and reader.run(f"{switch}.checked")
    reader.run(f"{switch}.click()")
    reader.open(f"{address}/book/emulator.html")
    assert reader.run(folds) == [False] * count
