"""Agreement with CuPy: what runs here runs on CuPy with the same result, and what CuPy refuses is refused here."""

from __future__ import annotations

import re
import types
from typing import Any

import numpy as np
import pytest
from fake_cupy.snippets import REFUSED, SNIPPETS
from tools.locked_cupy import NEEDS

from climb import fake_cupy as cp
from climb.bench import cuda as choice
from climb.fake_cupy.errors import CUDADriverError, CUDARuntimeError
from climb.toolchain import CompileError


def same(ours: Any, theirs: Any) -> None:
    if isinstance(ours, np.ndarray):
        assert isinstance(theirs, np.ndarray)
        assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


class TestLikeCupy:
    @pytest.mark.parametrize("name", SNIPPETS)
    def test_snippet_runs(self, name: str) -> None:
        SNIPPETS[name](cp)

    @pytest.mark.parametrize("name", REFUSED)
    def test_wrong_snippet_is_refused(self, name: str) -> None:
        refusals = (TypeError, ValueError, IndexError, LookupError, CUDADriverError, CUDARuntimeError, CompileError)
        with pytest.raises(refusals):
            REFUSED[name](cp)

    @pytest.mark.gpu
    @pytest.mark.parametrize("name", SNIPPETS)
    def test_cupy_gives_the_same_result(self, name: str) -> None:
        try:
            theirs = SNIPPETS[name](choice.cp)
        except ImportError as error:
            if name not in NEEDS:
                raise
            pytest.skip(f"{NEEDS[name]}, which CuPy's {name} needs, is not in requirements.txt and not here: {error}")
        same(SNIPPETS[name](cp), theirs)

    @pytest.mark.gpu
    @pytest.mark.parametrize("name", REFUSED)
    def test_cupy_refuses_the_wrong_snippet(self, name: str) -> None:
        with pytest.raises(Exception):  # noqa: B017 (CuPy has many)
            REFUSED[name](choice.cp)
        choice.cp.cuda.Device().synchronize()

    @pytest.mark.gpu
    def test_every_public_name_exists_in_cupy(self) -> None:
        for name, value in vars(cp).items():
            own = isinstance(value, types.ModuleType) and value.__name__.startswith("climb.")
            if not own and not name.startswith("_") and name not in ("annotations", "NoReturn"):
                assert hasattr(choice.cp, name), name

    def test_every_function_exists_in_the_source_of_cupy(self) -> None:
        """Needs no GPU: CuPy's __init__ imports or defines every public name."""
        import importlib.util

        found = importlib.util.find_spec("cupy")
        if found is None or found.origin is None:
            pytest.skip("CuPy is not installed")
        with open(found.origin, encoding="utf-8") as file:
            text = file.read()
        for name in cp._FUNCTIONS:
            assert re.search(rf"\bimport {name}\b|\bas {name}\b|^def {name}\(|^    {name},", text, re.MULTILINE), name
