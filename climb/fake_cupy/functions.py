"""The functions of CuPy's namespace that the book uses, on device arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.fake_cupy.arrays import check_dtype, fresh, ndarray, to_host
from climb.fake_cupy.registry import FUNCTIONS

# Creating arrays


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return a device array of arbitrary values (here NaN, or -1 for integers)."""
    return ndarray(shape, dtype, order=order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    """Return a device array filled with `fill_value`, of its dtype unless `dtype` is given."""
    made = ndarray(shape, np.asarray(to_host(fill_value)).dtype if dtype is None else dtype, order=order)
    made.fill(fill_value)
    return made


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return a device array of zeros."""
    return full(shape, 0, dtype, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return a device array of ones."""
    return full(shape, 1, dtype, order)


def empty_like(a: ndarray, dtype: Any = None) -> ndarray:
    """Return a device array of arbitrary values with the shape, layout and (unless `dtype` is given) dtype of `a`."""
    return _like(a, dtype)


def full_like(a: ndarray, fill_value: Any, dtype: Any = None) -> ndarray:
    """Return a device array like `a`, filled with `fill_value`."""
    made = _like(a, dtype)
    made.fill(fill_value)
    return made


def zeros_like(a: ndarray, dtype: Any = None) -> ndarray:
    """Return a device array of zeros like `a`."""
    return full_like(a, 0, dtype)


def ones_like(a: ndarray, dtype: Any = None) -> ndarray:
    """Return a device array of ones like `a`."""
    return full_like(a, 1, dtype)


def _like(a: ndarray, dtype: Any) -> ndarray:
    host = to_host(a)
    order = "F" if host.flags.f_contiguous and not host.flags.c_contiguous else "C"
    return ndarray(host.shape, host.dtype if dtype is None else dtype, order=order)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """numpy.arange on the device; a single argument is `stop`."""
    host = np.arange(start, dtype=dtype) if stop is None else np.arange(start, stop, step, dtype=dtype)
    return fresh(host)


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None) -> ndarray:
    """numpy.linspace on the device."""
    return fresh(np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> ndarray:
    """numpy.eye on the device."""
    return fresh(np.eye(N, M, k, dtype=dtype))


# Between host and device


def array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K") -> ndarray:
    """Return a device array with the values of `obj`: a device array, a NumPy array, or nested lists of numbers."""
    if isinstance(obj, ndarray):
        if not copy and (dtype is None or check_dtype(dtype) == obj.dtype) and order == "K":
            return obj
        return obj.astype(obj.dtype if dtype is None else dtype, order=order or "K")
    host = np.asarray(obj, dtype=dtype)
    check_dtype(host.dtype)
    return fresh(host, order or "K")


def asarray(a: Any, dtype: Any = None, order: str | None = None) -> ndarray:
    """Return `a` itself if it is a device array of `dtype`, else a new device array with its values."""
    return array(a, dtype, copy=False, order=order or "K")


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """Return `a` itself if it is a C-contiguous device array of `dtype`, else a contiguous copy on the device."""
    if isinstance(a, ndarray) and a.flags.c_contiguous and (dtype is None or check_dtype(dtype) == a.dtype):
        return a
    return array(a, dtype, order="C")


def asnumpy(
    a: Any, stream: None = None, order: str = "C", out: np.ndarray | None = None, *, blocking: bool = True
) -> np.ndarray:
    """Return a copy on the host."""
    if isinstance(a, ndarray):
        return a.get(order=order, out=out)
    host = np.asarray(a, order=order)
    if out is None:
        return host
    out[...] = host
    return out


# Shapes: views where NumPy returns views


def transpose(a: ndarray, axes: Any = None) -> ndarray:
    """Return a view of `a` with its axes reversed, or in the order `axes`."""
    return _device(a).transpose(axes)


def reshape(a: ndarray, newshape: Any, order: str = "C") -> ndarray:
    """Return `a` in another shape: a view where possible, else a copy."""
    return _device(a).reshape(newshape, order=order)


def ravel(a: ndarray, order: str = "C") -> ndarray:
    """Return `a` in one dimension: a view where possible, else a copy."""
    return _device(a).ravel(order=order)


def copyto(dst: ndarray, src: Any) -> None:
    """Copy `src`, a device array or a number, into `dst`."""
    _device(dst)[...] = src


# Computation


def _lift(function: Callable[..., Any], *options: str) -> Callable[..., Any]:
    """Adapt NumPy's `function` to device arrays. It takes arrays and numbers by position, and the keywords
    `options`."""

    def lifted(*args: Any, **kwargs: Any) -> Any:
        if unknown := set(kwargs) - set(options):
            raise TypeError(
                f"on the emulator, {function.__name__} takes no {', '.join(sorted(unknown))}; it takes "
                f"{', '.join(options) or 'no keywords'}"
            )
        if not any(isinstance(leaf, ndarray) for leaf in _leaves(args)):
            raise TypeError(f"{function.__name__} needs a device array and was given none; cp.asarray makes one")
        with np.errstate(all="ignore"):
            result = function(*map(_to_host_deep, args), **{k: _keyword(v) for k, v in kwargs.items()})
        return tuple(map(fresh, result)) if isinstance(result, tuple) else fresh(result)

    lifted.__name__ = lifted.__qualname__ = function.__name__
    lifted.__doc__ = (
        f"numpy.{function.__name__} on device arrays; the result is a device array even if it is a single number."
    )
    return lifted


def _leaves(args: Any) -> list[Any]:
    return [leaf for arg in args for leaf in (arg if isinstance(arg, (list, tuple)) else [arg])]


def _to_host_deep(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(isinstance(item, (ndarray, np.ndarray)) for item in value):
        return type(value)(to_host(item) for item in value)
    if isinstance(value, (list, tuple)) or value is None:
        return value
    return to_host(value)


def _keyword(value: Any) -> Any:
    return to_host(value) if isinstance(value, (ndarray, np.ndarray)) else value


def _device(a: Any) -> ndarray:
    if not isinstance(a, ndarray):
        raise TypeError(f"expected a device array, got {type(a)}; cp.asarray makes one")
    return a


_REDUCING = ("axis", "dtype", "keepdims")

#: The keywords that each function takes here. Ufuncs follow below and take `dtype` only.
_KEYWORDS: dict[str, tuple[str, ...]] = {
    "sum": _REDUCING,
    "prod": _REDUCING,
    "mean": _REDUCING,
    "cumsum": ("axis", "dtype"),
    "min": ("axis", "keepdims"),
    "amin": ("axis", "keepdims"),
    "max": ("axis", "keepdims"),
    "amax": ("axis", "keepdims"),
    "all": ("axis", "keepdims"),
    "any": ("axis", "keepdims"),
    "argmin": ("axis",),
    "argmax": ("axis",),
    "count_nonzero": ("axis",),
    "allclose": ("rtol", "atol", "equal_nan"),
    "isclose": ("rtol", "atol", "equal_nan"),
    "array_equal": ("equal_nan",),
    "where": (),
    "clip": (),
    "bincount": ("minlength",),
    "concatenate": ("axis",),
    "stack": ("axis",),
    "dot": (),
    "flip": ("axis",),
    "roll": ("axis",),
    "outer": (),
    "pad": ("mode", "constant_values"),
    "tile": (),
    "repeat": ("axis",),
    "diff": ("n", "axis"),
}
# fmt: off
_UFUNCS = (
    "abs", "absolute", "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "mod", "remainder",
    "power", "negative", "square", "sqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "sign", "floor",
    "ceil", "rint", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not", "bitwise_and",
    "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "matmul",
)
# fmt: on

_CREATION = (empty, full, zeros, ones, empty_like, full_like, zeros_like, ones_like, arange, linspace, eye)
_TRANSFER = (array, asarray, ascontiguousarray, asnumpy, transpose, reshape, ravel, copyto)

# By name, because some of these names would hide built-in functions of Python in this module.
FUNCTIONS.update({function.__name__: function for function in (*_CREATION, *_TRANSFER)})
FUNCTIONS.update({name: _lift(getattr(np, name), *keywords) for name, keywords in _KEYWORDS.items()})
FUNCTIONS.update({name: _lift(getattr(np, name), "dtype") for name in _UFUNCS})
