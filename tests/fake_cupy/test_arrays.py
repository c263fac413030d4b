"""Device arrays: addresses, views, layouts, copies, and results that are known without CuPy."""

from __future__ import annotations

import numpy as np
import pytest
from fake_cupy.snippets import SNIPPETS
from fake_cupy.source import ramp
from hypothesis import given, settings
from hypothesis import strategies as st

from climb import fake_cupy as cp
from climb.fake_cupy.memory import device_memory


class TestMemory:
    def test_view_has_the_address_of_its_first_element(self) -> None:
        a = cp.asarray(ramp(12).reshape(3, 4))
        start = a.data.ptr
        assert start % 512 == 0
        assert a[1:, 2:].data.ptr == start + 24
        assert a[::-1].data.ptr == start + 32
        assert a.T.data.ptr == a.reshape(12).data.ptr == a.ravel().data.ptr == a.view(cp.int32).data.ptr == start
        assert a.T.ravel().data.ptr != start
        assert a.copy().data.ptr != start
        assert a[2, 3].data.ptr == start + 44

    def test_writing_a_view_changes_its_base(self) -> None:
        a = cp.zeros((3, 4), dtype=cp.float32)
        a[1:, 2:] = 5
        a.T[0] += 1
        np.testing.assert_array_equal(a.get(), [[1, 0, 0, 0], [1, 0, 5, 5], [1, 0, 5, 5]])

    def test_empty_array_has_address_zero(self) -> None:
        assert cp.zeros((0, 3)).data.ptr == 0
        assert cp.zeros((0, 3)).shape == (0, 3)

    def test_layout_is_kept_as_in_cupy(self) -> None:
        columns = np.ones((3, 4)).T
        assert cp.asarray(columns).flags.f_contiguous
        assert cp.ascontiguousarray(cp.asarray(columns)).flags.c_contiguous
        assert cp.asarray(np.ones((6, 4))[::2]).flags.c_contiguous

    def test_asarray_copies_host_arrays_but_not_device_arrays(self) -> None:
        host = ramp(4)
        a = cp.asarray(host)
        host[0] = 9
        assert a.tolist() == [0, 1, 2, 3]
        assert cp.asarray(a) is a
        assert cp.array(a) is not a
        assert cp.asarray(a, dtype=cp.float64) is not a
        back = a.get()
        back[0] = 9
        assert a.tolist() == [0, 1, 2, 3]

    def test_set_copies_and_refuses_other_dtypes_and_shapes(self) -> None:
        a = cp.zeros(4, dtype=cp.float32)
        a.set(ramp(4))
        assert a.tolist() == [0, 1, 2, 3]
        with pytest.raises(TypeError):
            a.set(ramp(4, np.float64))
        with pytest.raises(ValueError, match="shape"):
            a.set(ramp(5))
        with pytest.raises(TypeError):
            a.set([0, 1, 2, 3])

    def test_get_fills_out_and_refuses_other_shapes(self) -> None:
        out = np.zeros(4, np.float32)
        assert cp.asarray(ramp(4)).get(out=out) is out
        assert out.tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="expected"):
            cp.asarray(ramp(4)).get(out=np.zeros(5, np.float32))

    @pytest.mark.parametrize("dtype", ["U1", "O", "M8[s]", "V4"])
    def test_dtype_without_a_cuda_type_is_refused(self, dtype: str) -> None:
        with pytest.raises(ValueError, match="Unsupported dtype"):
            cp.zeros(3, dtype=dtype)


class TestResults:
    """Values that are known without CuPy."""

    def test_snippets_give_the_known_values(self) -> None:
        assert SNIPPETS["sum"](cp) == 45
        assert SNIPPETS["a sum is an array"](cp) == "array(6., dtype=float32)"
        assert SNIPPETS["a number in text"](cp) == "2.000 3"
        assert SNIPPETS["iteration"](cp) == [0, 1, 2, 3]
        assert SNIPPETS["dtype of a Python float"](cp) == "float32"
        np.testing.assert_array_equal(SNIPPETS["in place"](cp), [1, 2, 6, 8, 10, 12])
        np.testing.assert_array_equal(SNIPPETS["mask"](cp), [0, 1, 2, 0, 0])
        np.testing.assert_array_equal(SNIPPETS["stack"](cp), [[1, 0], [1, 0]])
        np.testing.assert_array_equal(SNIPPETS["division by zero"](cp), [np.inf, np.inf])

    def test_results_of_operations_are_device_arrays(self) -> None:
        a = cp.ones(4)
        for result in (a + 1, a.sum(), np.sqrt(a), np.sum(a), a > 0, a[0], cp.concatenate((a, a)), a.astype(cp.int8)):
            assert isinstance(result, cp.ndarray)
            assert device_memory.find(result.data.ptr) is not None

    @given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
    @settings(max_examples=100, deadline=None)
    def test_slice_is_a_view_at_the_right_address(self, shape: list[int], data: st.DataObject) -> None:
        host = ramp(int(np.prod(shape))).reshape(shape)
        a = cp.asarray(host)
        index = tuple(data.draw(st.slices(n)) for n in shape)
        view = a[index]
        np.testing.assert_array_equal(view.get(), host[index])
        assert view.strides == host[index].strides
        if view.size:
            assert view.data.ptr - a.data.ptr == int(host[index].flat[0]) * 4
