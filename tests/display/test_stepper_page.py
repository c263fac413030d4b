"""A stepper in a browser: the page steps through it by keyboard, and draws what it shows without a script."""

from __future__ import annotations

import re

import pytest
from tools import browser as chromium
from tools.steppers import STATIC, data_of, of_two_transposes  # noqa: F401

from climb.display.cell_output import CellOutput

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, wavefronts: CellOutput):
    """A page with one stepper, in a browser. Skipped where no browser is installed."""
    if chromium.executable() is None:
        pytest.skip("needs a browser: `apt-get install chromium` installs one")
    folder = tmp_path_factory.mktemp("stepper")
    style = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("palette.css", "stepper.css"))
    script = (STATIC / "stepper.js").read_text(encoding="utf-8")
    (folder / "a.html").write_text(
        f'<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<link rel=icon href='data:,'><style>{style}</style>{wavefronts.html}<script>{script}</script>",
        encoding="utf-8",
    )
    with chromium.serve(folder) as address, chromium.Browser() as browser:
        one = browser.page(width=390)
        one.open(f"{address}/a.html")
        yield one


def test_keyboard_steps_and_the_picture_and_the_words_follow(page, wavefronts):
    said = [line.split(". ", 1)[1] for line in wavefronts.text.splitlines()[1:]]
    sentence = "document.querySelector('.s-sentence').textContent"
    assert page.run("document.querySelector('.s-controls').hidden") is False
    assert page.run(sentence) == said[0]
    page.press("Tab")
    assert page.run("document.activeElement.className") == "s-play"  # the first step has no step before it
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.run(sentence) == said[2]
    assert said[2] in page.run("document.querySelector('svg').getAttribute('aria-label')")
    page.press("ArrowLeft")
    assert page.run(sentence) == said[1]
    page.run("document.querySelector('.s-next').click()")
    assert page.run("document.querySelector('output').textContent") == "3 / 33"
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.complaints() == []


def test_script_draws_what_the_page_without_it_shows(page, wavefronts):
    drawn = re.findall(r'<path d="([^"]*)"[^>]* data-part', wavefronts.html)
    page.run(
        f"(i => {{ i.value = {data_of(wavefronts)['at'] + 1}; i.dispatchEvent(new Event('input')) }})"
        "(document.querySelector('input'))"
    )
    assert page.run("[...document.querySelectorAll('path[data-part]')].map(p => p.getAttribute('d'))") == drawn
    assert len(drawn) > 8 and any(drawn)


def test_playing_starts_on_demand_alone_and_stops(page):
    page.run("document.querySelector('input').focus()")
    page.run("(i => { i.value = 32; i.dispatchEvent(new Event('input')) })(document.querySelector('input'))")
    play = "document.querySelector('.s-play')"
    assert page.run(f"{play}.getAttribute('aria-label')") == "Play"
    page.run(f"{play}.click()")
    assert page.run(f"{play}.getAttribute('aria-label')") == "Pause"
    page.run("new Promise(done => setTimeout(done, 1300))")
    assert page.run("document.querySelector('output').textContent") == "33 / 33"
    assert page.run(f"{play}.getAttribute('aria-label')") == "Play"
