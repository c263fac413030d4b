"""The model of messages and slabs: it finds the numbers that times were made from, and has the right limits."""

from __future__ import annotations

import pytest

from climb.distributed.model import Link, Slabs, fit, worst_error


def test_fit_finds_latency_and_bandwidth_again() -> None:
    link = Link(12e-6, 250e9)
    samples = [(4.0**power, link.time(4.0**power)) for power in range(1, 15)]
    found = fit(samples)
    assert found.latency_s == pytest.approx(12e-6) and found.bytes_per_s == pytest.approx(250e9)
    assert worst_error(found, samples) < 1e-9
    assert link.time(link.half) == pytest.approx(2 * link.latency_s)


def test_times_that_are_no_line_are_refused() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        fit([(4, 1e-6), (4, 2e-6)])
    with pytest.raises(ValueError, match="do not grow"):
        fit([(4, 2e-3), (1 << 20, 1e-6)])


def test_overlap_hides_a_message_until_slabs_are_thin() -> None:
    slabs, link = Slabs(5e-6, 7e-6, 1 << 20), Link(20e-6, 300e9)
    assert slabs.overlapped(512, 1, 4, link) == slabs.exchanged(512, 1, 4, link) == slabs.compute(512)
    assert slabs.overlapped(512, 2, 4, link) == slabs.compute(256)
    assert slabs.exchanged(512, 2, 4, link) == pytest.approx(slabs.compute(256) + 20e-6 + (4 << 20) / 300e9)
    thin = slabs.overlapped(512, 64, 4, link)
    assert thin == pytest.approx(20e-6 + (8 << 20) / 300e9 + 5e-6 + 8 * 7e-6) and thin > slabs.compute(8)
