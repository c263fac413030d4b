"""The built pages in a browser. The first tests hold the browser to a small page, so that the others can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.browser import Browser, BrowserError, serve

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
