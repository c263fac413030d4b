"""Ladders and exercises are found by their folders, without importing them."""

from __future__ import annotations

import re

import pytest

from climb.bench import registry


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A function that writes the module of a folder below an empty ``kernels``."""
    monkeypatch.setattr(registry, "KERNELS", tmp_path)

    def write(place: str, text: str) -> None:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "__init__.py").write_text(text)

    return write


@pytest.mark.parametrize(
    "text",
    [
        "ladder = 1\n",
        "ladder = 1\nafter = 2\n",
        "before = 1\nladder = 2\n",
        "ladder = other = 1\n",
        "other = ladder = 1\n",
        "ladder: int = 1\nafter = 2\n",
        "from elsewhere import one, ladder\nafter = 2\n",
        "from elsewhere import one as ladder\n",
    ],
)
def test_a_module_that_assigns_the_ladder_anywhere_at_its_top_is_one(text, kernels):
    kernels("chapter/one", text)
    assert registry.ladder_names() == ("one",)


@pytest.mark.parametrize(
    "text", ["", "other = 1\n", "ladder.name = 1\n", "def f():\n    ladder = 1\n", "import ladder\n"]
)
def test_a_module_that_does_not_assign_the_ladder_is_none(text, kernels):
    kernels("chapter/one", text)
    assert registry.ladder_names() == ()


def test_chapters_with_exercises_are_named_by_their_folder(kernels):
    kernels("tiling/exercises", "")
    kernels("classifier/exercises", "")
    kernels("sgemm/sgemm", "ladder = 1\n")
    assert registry.exercise_chapters() == ("classifier", "tiling")


def test_a_name_in_two_chapters_is_refused(kernels):
    kernels("first/copy", "ladder = 1\n")
    kernels("second/copy", "ladder = 1\n")
    with pytest.raises(ValueError, match=r"two ladders are called copy: .*first/copy and .*second/copy"):
        registry.ladder_names()
    with pytest.raises(ValueError, match="two ladders are called copy"):
        registry.ladder_module("copy")


def test_a_ladder_is_found_by_its_name_alone(kernels):
    kernels("tiling/exercises", "ladder = 1\n")
    kernels("sgemm/sgemm", "ladder = 1\n")
    kernels("sgemm/other", "other = 1\n")
    assert registry.ladder_module("sgemm") == "kernels.sgemm.sgemm"
    for name in ("other", "exercises", "missing", "*"):
        with pytest.raises(registry.UnknownLadder, match=f"no ladder '{re.escape(name)}'; the ladders are sgemm"):
            registry.ladder_module(name)
