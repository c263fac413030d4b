"""The search of the built book finds a subject in its own chapter first, in the singular and in the plural."""

from __future__ import annotations

import pytest
from tools.browser import Browser

pytestmark = pytest.mark.thorough

#: Puts a query into the address, as the form does, and returns the pages that the search finds, the best first.
_FIND = """(query => {
  history.replaceState(null, "", "search.html?q=" + encodeURIComponent(query));
  return Search._performSearch(...Search._parseQuery(query)).reverse().map(result => result[0] + result[2]);
})(%r)"""

QUERIES = {
    "bank-conflicts": ["bank conflict", "bank conflicts", "Bank Conflict", "swizzle"],
    "coalescing": ["coalescing", "coalesced", "sectors"],
    "warp-shuffles": ["warp shuffle", "warp shuffles", "reduction"],
    "tiling": ["halo", "halos"],
    "occupancy": ["occupancy"],
    "divergence": ["divergence", "warp divergence"],
    "sgemm": ["stream-K", "tensor core", "tensor cores"],
    "conv-layers": ["im2col", "implicit GEMM"],
    "privatization": ["histogram privatization", "histogram", "histograms"],
    "float4": ["float4"],
    "light-speed": ["roofline", "arithmetic intensity"],
}


@pytest.fixture(scope="module")
def found(browser: Browser, address: str) -> dict[str, list[str]]:
    """The pages that the search finds for each query."""
    page = browser.page()
    page.open(f"{address}/search.html")
    page.run("new Promise(done => { const wait = () => Search.hasIndex() ? done(1) : setTimeout(wait, 20); wait(); })")
    answers = {query: page.run(_FIND % query) for queries in QUERIES.values() for query in queries}
    page.close()
    return answers


@pytest.mark.parametrize("chapter", QUERIES)
def test_subject_is_found_first_in_its_chapter(found: dict[str, list[str]], chapter: str) -> None:
    first = {query: (found[query] or ["nothing"])[0] for query in QUERIES[chapter]}
    assert first == dict.fromkeys(QUERIES[chapter], f"book/{chapter}")


def test_glossary_stays_among_the_results(found: dict[str, list[str]]) -> None:
    assert any(result.startswith("book/glossary") for result in found["bank conflict"])


def test_search_that_was_typed_shows_its_results(browser: Browser, address: str) -> None:
    page = browser.page()
    page.open(f"{address}/search.html?q=bank+conflict")
    shown = "document.querySelector('#search-results li a')"
    page.run(f"new Promise(done => {{ const wait = () => {shown} ? done(1) : setTimeout(wait, 20); wait(); }})")
    assert page.run(f"{shown}.getAttribute('href')").startswith("book/bank-conflicts.html")
    assert page.complaints() == []
    page.close()


def test_page_opened_from_a_search_marks_the_words_without_an_error(browser: Browser, address: str) -> None:
    """The playground's pictures have tips, which Sphinx cannot mark: it stopped there with an error."""
    page = browser.page()
    page.open(f"{address}/book/bank-conflicts.html?highlight=lane")
    page.settle()
    assert page.run("document.querySelectorAll('.rl-play svg title').length") > 0
    assert page.run("document.querySelectorAll('article .highlighted').length") > 10
    assert page.complaints() == []
    page.close()
