"""Names and options of CuPy that need a GPU: the error says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from climb import fake_cupy as cp
from climb.fake_cupy.errors import CUDADriverError


class TestWhatIsMissing:
    @pytest.mark.parametrize(
        ("use", "said"),
        [
            (lambda: cp.random.rand(3), r"has no cp.random; make random numbers with numpy.random.default_rng"),
            (lambda: cp.convolve, r"has no cp.convolve; it needs a GPU, or use numpy.convolve on cp.asnumpy"),
            (lambda: cp.ElementwiseKernel, "RawKernel"),
            (lambda: cp.get_default_memory_pool, r"has no cp.get_default_memory_pool; it needs a GPU$"),
            (lambda: cp.cuda.profile(), r"no cp.cuda.profile; it needs a GPU"),
            (lambda: cp.cuda.Event().query(), r"no Event.query; it needs a GPU"),
            (lambda: cp.cuda.runtime.getDeviceProperties(0), r"no cp.cuda.runtime.getDeviceProperties; it needs a GPU"),
            (lambda: cp.cuda.Device().attributes, r"no Device.attributes; it needs a GPU"),
            (lambda: cp.cuda.Stream().begin_capture(), r"no Stream.begin_capture; it needs a GPU"),
            (lambda: cp.ones(3).sort(), r"no ndarray.sort; it needs a GPU, or use cp.asnumpy\(a\).sort"),
            (lambda: cp.ones(3).not_a_method, "no attribute 'not_a_method'"),
        ],
    )
    def test_missing_name_says_what_to_do_instead(self, use: Callable[[], Any], said: str) -> None:
        with pytest.raises(AttributeError, match=said):
            use()

    @pytest.mark.parametrize(
        ("use", "said"),
        [
            (lambda: np.convolve(cp.ones(3), cp.ones(3)), "no numpy.convolve for device arrays; use cp.asnumpy"),
            (lambda: np.add.reduce(cp.ones(3)), "only as a plain call"),
            (lambda: cp.sum(cp.ones(3), where=True), "takes no where"),
            (lambda: cp.sum([1, 2, 3]), "cp.asarray makes one"),
            (lambda: cp.cuda.Device(2), "there are 2 emulated devices, and none has number 2"),
            (lambda: cp.ones(3)[[0, 1]], "goes through cp.asarray"),
            (lambda: cp.ones(3).sum(out=cp.ones(1)), "takes no out"),
        ],
    )
    def test_unsupported_call_is_refused_with_a_reason(self, use: Callable[[], Any], said: str) -> None:
        with pytest.raises((TypeError, IndexError, CUDADriverError), match=said):
            use()

    def test_missing_attributes_can_be_probed(self) -> None:
        assert not hasattr(cp, "__version__")
        assert not hasattr(cp.ones(1), "__cuda_array_interface__")
        assert "RawModule" in dir(cp)
        assert "_FUNCTIONS" not in dir(cp)
