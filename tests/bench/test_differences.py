"""A GPU's comparison, tried with NumPy in CuPy's place: where it agrees it says what the host says, else nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from tiny_ladder import scale

from climb.bench import checking, device_reference, differences
from climb.bench.checking import WrongResult

RANDOM = np.random.default_rng(0)
WANT = RANDOM.standard_normal(1000)
BOTH_NAN = np.where(np.arange(1000) == 7, np.nan, WANT)
BOTH_INF = np.where(np.arange(1000) == 7, np.inf, WANT)


@pytest.mark.parametrize("want", [WANT, BOTH_NAN, BOTH_INF, 1e300 * WANT], ids=["random", "nan", "inf", "overflow"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_error_of_an_agreeing_output_is_that_of_the_host(want, dtype):
    with np.errstate(over="ignore"):
        out = want.astype(dtype)
    host = checking.compare(out, want, 1e-2)
    if want is not BOTH_NAN and dtype != "f8" and abs(want[0]) > 1e30:
        assert differences.agreed_error(np, out, want, 1e-2, chunk=64) is None, "no finite value: no scale"
        return
    assert host.wrong == 0
    assert differences.agreed_error(np, out, want, 1e-2, chunk=64) == host.error


@pytest.mark.parametrize("value", [np.nan, np.inf, 2.0, 0.0])
@pytest.mark.parametrize("at", [0, 500, 999])
def test_any_wrong_element_is_left_to_the_host(value, at):
    out = WANT.astype("f4")
    out[at] = value if value != 0.0 else out[at] + np.float32(1e-3)
    assert differences.agreed_error(np, out, WANT, 1e-5, chunk=64) is None


def test_large_integers_that_are_one_float64_are_told_apart():
    want = np.array([2**62, 5], "i8")
    assert differences.agreed_error(np, want, want, 0.0) == 0.0
    assert differences.agreed_error(np, want + np.array([1, 0]), want, 0.0) is None


def test_subnormal_numbers_are_left_to_the_host():
    tiny = np.array([1e-40, -1e-41], "f4")
    assert differences.agreed_error(np, tiny, tiny.astype("f8"), 1e-5) is None
    terms = np.array([1.0, 1e-40])
    assert differences.agreed_component_error(np, tiny, tiny.astype("f8"), terms) is None


def test_componentwise_error_is_that_of_the_host():
    out, terms = WANT.astype("f4"), np.abs(WANT) + 0.5
    found = differences.agreed_component_error(np, out, WANT, terms, chunk=64)
    assert found == checking.component_error(out, WANT, terms) > 0


@pytest.fixture
def on_device(monkeypatch):
    """The stand-in's arrays compared as a GPU's are; returns what was found there, None for "ask the host"."""
    found = []

    def error(self, name, out, expected, tolerance):
        found.append(differences.agreed_error(np, device_reference.cp.asnumpy(out), expected, tolerance))
        return found[-1]

    monkeypatch.setattr(device_reference.DeviceReference, "error", error)
    return found


def test_a_case_takes_the_devices_word_for_what_is_right(on_device):
    found = checking.verify(scale.ladder["plain"], {"n": 1000})
    assert on_device == [found.max_rel_error]


def test_a_case_lets_the_host_say_what_is_wrong(on_device):
    with pytest.raises(WrongResult, match=r"wrong in 1 of 1000 elements .* first at y\[999\]: got nan"):
        checking.verify(scale.faulty["last_missing"], {"n": 1000})
    assert on_device == [None]


def test_references_are_brought_to_the_device_once_and_compared_there(monkeypatch):
    steps: list[str] = []

    class Null:
        def __enter__(self) -> None:
            steps.append("enter")

        def __exit__(self, *error: object) -> None:
            steps.append("leave")

    stream = SimpleNamespace(synchronize=lambda: steps.append("wait"))
    cuda = SimpleNamespace(get_current_stream=lambda: stream, Stream=SimpleNamespace(null=Null()))
    brought = []
    gpu = SimpleNamespace(**{**vars(np), "asarray": lambda host: brought.append(host) or host, "cuda": cuda})
    monkeypatch.setattr(device_reference, "cp", gpu)
    monkeypatch.setattr(device_reference, "backend", "cupy")
    there, out, terms = device_reference.DeviceReference(), WANT.astype("f4"), np.abs(WANT) + 0.5
    assert [there.error("y", out, WANT, 1e-2) for _ in range(2)] == [checking.compare(out, WANT, 1e-2).error] * 2
    assert there.component_error("y", out, WANT, terms) == checking.component_error(out, WANT, terms)
    assert len(brought) == 2 and brought[0] is WANT and brought[1] is terms
    assert steps == ["wait", "enter", "wait", "leave"] * 3
