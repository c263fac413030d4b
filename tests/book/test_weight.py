"""A chapter is light: what its first load fetches, and what the build left out of its style sheet and scripts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tools import site
from tools.browser import Browser

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "book" / "_extensions"))

import icons  # noqa: E402
import lean  # noqa: E402
import lean_css  # noqa: E402
import mathml  # noqa: E402

MOST_BYTES, MOST_REQUESTS = 900_000, 20


def test_first_load_of_every_page_is_light_and_complains_of_nothing(book: Path, browser: Browser, address: str) -> None:
    page = browser.page(cache=False)
    heavy = []
    largest = max(site.pages(book), key=lambda path: path.stat().st_size)
    for path in {*site.sample(book), largest}:
        page.open(f"{address}/{path.relative_to(book).as_posix()}")
        fetched = [one for one in page.requests() if one.url.startswith("http")]
        size = sum(one.bytes for one in fetched)
        if size > MOST_BYTES or len(fetched) > MOST_REQUESTS:
            heavy.append(f"{path.name}: {size:,} bytes in {len(fetched)} requests")
        failed = [one for one in fetched if one.status not in (0, 200)]  # 0: on its way when the page was ready
        heavy += [f"{path.name}: {one.url} is answered by {one.status}" for one in failed]
        heavy += [f"{path.name}: {complaint}" for complaint in page.complaints()]
    page.close()
    assert heavy == []


def test_built_book_has_neither_an_icon_font_nor_what_nothing_loads(book: Path) -> None:
    names = [path.name for path in (book / "_static").rglob("*") if path.is_file()]
    assert [name for name in names if re.search(r"fontawesome|fa-solid|thebe|bootstrap|\.map$", name)] == []
    assert [path.name for path in site.pages(book) if re.search(r"class=\"[^\"]*\bfa-", path.read_text())] == []


def test_pictures_have_their_size_and_wait_until_they_come_near(book: Path) -> None:
    tags = [tag for path in site.pages(book) for tag in re.findall(r"<img\b[^>]*>", path.read_text(encoding="utf-8"))]
    tags = [tag for tag in tags if "logo__image" not in tag]
    assert len(tags) > 50
    assert [tag for tag in tags if "loading=" not in tag or not re.search(r"\b(?:width|height)=", tag)] == []


def test_rules_that_no_page_can_use_are_left_out() -> None:
    css = """/* a { b } */ @charset "UTF-8"; .used, .gone a:is(.gone), :not(.gone) > p { color: red } #gone{top:0}
    @media print { .gone { top: 0 } } @media (width > 1px) { .used::after { content: "}" } .gone {top:0} }
    @font-face { font-family: Font Awesome } @font-face {font-family: Mine} .a\\:b { top: 0 }
    .used { &.gone { top: 0 } }"""
    left = lean_css.shrink(css, {"used", "a:b"})
    assert left == (
        '@charset "UTF-8";.used,:not(.gone) > p{color: red}@media (width > 1px){.used::after{content: "}"}}'
        "@font-face{font-family: Mine}.a\\:b{top: 0}.used{&.gone { top: 0 }}"
    )


def test_addresses_of_a_moved_style_sheet_lead_to_the_same_files() -> None:
    css = 'a { b: url(../x.png) url("y.png") url(data:z) url(#i) } @import "../basic.css";'
    assert lean_css.moved(css, "styles/deep") == (
        'a { b: url("styles/x.png") url("styles/deep/y.png") url(data:z) url(#i) } @import url("styles/basic.css");'
    )


def test_icon_without_a_drawing_is_named() -> None:
    drawn, unknown = icons.inlined('<i class="fa-solid fa-bars fa-lg x" title="t"></i><i class="fas fa-yeti"></i>')
    assert drawn.startswith('<span class="rl-icon rl-icon-large x" title="t"><svg') and unknown == {"yeti"}


@pytest.mark.parametrize(
    ("name", "text", "size"),
    [
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt"/>', (96, 48)),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10"/>', (20, 10)),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="100%"/>', None),
    ],
)
def test_size_of_a_picture_is_in_pixels(tmp_path: Path, name: str, text: str, size: tuple[int, int] | None) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert lean.picture_size(tmp_path / name) == size
    tag = lean.picture(f'<img src="{name}" alt="a b">', tmp_path)
    assert ('width="' in tag) == (size is not None) and 'loading="lazy"' in tag


def test_file_that_says_where_it_is_needed_is_left_out_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "play.js").write_text("/* only where: rl-banks */\nplay()", encoding="utf-8")
    (tmp_path / "_static" / "all.js").write_text('"use strict";\nall()', encoding="utf-8")
    scripts = '<script src="_static/all.js?v=1"></script><script src="_static/play.js"></script>'
    for body, inside in (("<p>", False), ('<div class="rl-banks">', True)):
        page = lean.slim(f"<head>{scripts}</head><body>{body}</body>", "a.html", lean.Site(tmp_path))
        (bundle,) = re.findall(r'src="(_static/bundle-\w+\.js)"', page)
        assert ("play()" in (tmp_path / bundle).read_text(encoding="utf-8")) == inside
        assert page.count("<script") == 1


def test_formula_keeps_its_tex_and_says_how_it_stands() -> None:
    assert mathml.mathml(r"a < \frac{1}{2}", "block").startswith('<math display="block"><semantics><mrow>')
    assert mathml.mathml("a < b", "inline").endswith("a &lt; b</annotation></semantics></math>")


def test_aligned_lines_are_a_table_and_an_unknown_environment_is_an_error() -> None:
    lines = r"a &= b \\ &\quad + c"
    drawn = mathml.mathml(rf"\begin{{aligned}} {lines} \end{{aligned}}", "block")
    assert drawn.count("<mtr>") == 2 and "<mi>&" not in drawn
    with pytest.raises(ValueError, match="left over"):
        mathml.mathml(rf"\begin{{gathered}} {lines} \end{{gathered}}", "block")
