"""Peers of sparse products, with a double of PyTorch that multiplies by NumPy."""

from __future__ import annotations

import itertools
import sys
import types

import numpy as np
import pytest

from climb.bench.libraries import cublas
from climb.bench.registry import load_ladder

SIZE = {"m": 5, "n": 4, "k": 7, "nonzeros": 3}


class CSR:
    """A tensor in CSR: as a dense one, row by row."""

    def __init__(self, offsets, columns, values, size, check_invariants):
        self.dense = np.zeros(size, np.float32)
        for row, (start, end) in enumerate(itertools.pairwise(offsets)):
            self.dense[row, columns[start:end]] = values[start:end]

    def to_dense(self):
        return self.dense


def _product(factors):
    """``mv`` (1) or ``mm`` (2), which takes a second factor of that many dimensions."""

    def multiply(a, b, out):
        assert isinstance(a, CSR) and b.ndim == factors
        out[...] = a.dense @ b

    return multiply


@pytest.fixture
def allowed(monkeypatch):
    """A list that says for each dense product whether TF32 was allowed."""
    seen: list[bool] = []
    settings = types.SimpleNamespace(allow_tf32=None)

    def matmul(a, b, out):
        seen.append(settings.allow_tf32)
        out[...] = a @ b

    cuda = types.SimpleNamespace(matmul=settings)
    double = types.SimpleNamespace(
        from_dlpack=lambda array: array, sparse_csr_tensor=CSR, mv=_product(1), mm=_product(2), matmul=matmul,
        backends=types.SimpleNamespace(cuda=cuda),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", double)
    monkeypatch.setattr(cublas, "fastest", lambda candidates: [make() for make in candidates][-1])
    return seen


@pytest.mark.parametrize(
    ("ladder", "peer", "tf32"),
    [
        ("csr_vector", "cuSPARSE", []), ("csr_vector", "cuBLAS dense", [False]), ("csr_matrix", "cuSPARSE", []),
        ("csr_matrix", "cuBLAS fp32 dense", [False]), ("csr_matrix", "cuBLAS TF32 dense", [True]),
    ],
)  # fmt: skip
def test_a_product_is_that_of_the_matrix_with_its_zeros(allowed, ladder, peer, tf32) -> None:
    problem = load_ladder(ladder).problem
    arrays = dict(load_ladder(ladder).inputs(SIZE))
    (output,) = problem.outputs
    arrays[output.name] = np.full(output.extents(SIZE), np.nan, output.dtype)
    (found,) = (each for each in load_ladder(ladder).peers if each.name == peer)
    found.prepare(arrays, SIZE)()
    expected = problem.reference(arrays, SIZE)[output.name]
    np.testing.assert_allclose(arrays[output.name], expected, rtol=1e-5, atol=1e-5)
    assert allowed == tf32


def test_the_peer_in_tf32_alone_may_be_off_by_the_rounding_of_both_factors_to_11_bits() -> None:
    peers = {peer.name: peer for peer in load_ladder("csr_matrix").peers}
    assert peers["cuBLAS TF32 dense"].tolerance(SIZE) == 2 * 2.0**-11
    assert peers["cuBLAS fp32 dense"].tolerance is None


def test_the_version_of_the_library_is_read_from_its_number(allowed, monkeypatch) -> None:
    library = types.SimpleNamespace(create=lambda: "handle", getVersion=lambda handle: {"handle": 12507}[handle])
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", types.SimpleNamespace(cusparse=library))
    (found,) = (each for each in load_ladder("csr_vector").peers if each.name == "cuSPARSE")
    assert found.describe()["version"] == "12.5.7"
