"""Figures on the pages: in the colours of the theme, fetched only when shown, and without a slab behind them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.browser import Browser

CHAPTER = "bank-conflicts"


def pictures(book: Path) -> list[str]:
    """The ``<img>`` elements of a chapter's figures."""
    page = (book / "book" / f"{CHAPTER}.html").read_text(encoding="utf-8")
    return [
        img for box in re.findall(r'<span class="rl-themed".*?</span>', page) for img in re.findall("<img.*?>", box)
    ]


def test_every_figure_has_a_twin_for_each_theme_with_size_and_the_same_alt_text(book: Path) -> None:
    found = pictures(book)
    assert len(found) > 8
    for light, dark in zip(found[0::2], found[1::2], strict=True):
        assert 'class="only-light"' in light and 'class="only-dark"' in dark
        alts = [re.search(r'alt="([^"]+)"', img) for img in (light, dark)]
        assert alts[0] and alts[1] and alts[0][1] == alts[1][1]
        for img in (light, dark):
            assert 'loading="lazy"' in img and re.search(r'width="\d+" height="\d+"', img)


@pytest.mark.thorough
def test_reader_sees_and_fetches_the_twin_of_the_theme_without_a_slab(book: Path, address: str, browser: Browser):
    for scheme in ("light", "dark"):
        page = browser.page(scheme=scheme)
        page.open(f"{address}/book/{CHAPTER}.html")
        page.run("document.querySelector('figure .rl-themed').scrollIntoView()")
        loaded = page.run(
            f"""(async () => {{ const img = document.querySelector('figure .rl-themed .only-{scheme}');
            for (let i = 0; i < 100 && !img.complete; i++) await new Promise(done => setTimeout(done, 50));
            const look = getComputedStyle(img);
            return [img.naturalWidth > 0, look.backgroundColor, look.padding, look.filter]; }})()"""
        )
        assert loaded == [True, "rgba(0, 0, 0, 0)", "0px", "none"]
        fetched = {r.url.rsplit("-", 1)[1] for r in page.requests() if r.url.endswith((".svg",)) and "_images" in r.url}
        assert fetched == {f"{scheme}.svg"}
        page.close()
