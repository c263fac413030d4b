"""``cp.ndarray``: a NumPy array that lives in emulated device memory and behaves like CuPy's.

Like CuPy's it is not a subclass of `numpy.ndarray`: a NumPy function that would silently copy it to the host must fail
here too, so that code that runs here also runs on CuPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from climb.fake_cupy.device import Device
from climb.fake_cupy.memory import MemoryPointer, allocate
from climb.fake_cupy.registry import FUNCTIONS

#: The type codes of the dtypes that CuPy has.
DTYPES = frozenset("?bhilqBHILQefdFD")


def check_dtype(dtype: Any) -> np.dtype:
    """Return `dtype` as a NumPy dtype. Raises ValueError if CUDA has no such type."""
    found = np.dtype(dtype)
    if found.char not in DTYPES:
        raise ValueError(f"Unsupported dtype {found}: the device holds booleans, integers, floats and complex numbers")
    return found


class Flags:
    """The layout of an array, read by attribute or by name as in NumPy."""

    def __init__(self, host: np.ndarray, owndata: bool) -> None:
        self.c_contiguous: bool = host.flags.c_contiguous
        self.f_contiguous: bool = host.flags.f_contiguous
        self.owndata = owndata

    def __getitem__(self, name: str) -> bool:
        return {
            "C_CONTIGUOUS": self.c_contiguous,
            "F_CONTIGUOUS": self.f_contiguous,
            "OWNDATA": self.owndata,
        }[name]

    def __repr__(self) -> str:
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA")
        return "\n".join(f"  {name} : {self[name]}" for name in names)


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array on the device. A view shares the allocation of its base, at a different offset."""

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: int | tuple[int, ...],
        dtype: Any = float,
        memptr: MemoryPointer | None = None,
        strides: tuple[int, ...] | None = None,
        order: str = "C",
    ) -> None:
        kind = check_dtype(dtype)
        extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if memptr is None:
            if strides is not None:
                raise ValueError("strides need a memptr")
            size = int(np.prod(extents, dtype=np.int64)) * kind.itemsize
            memptr = MemoryPointer(allocate(size), 0)
            self._owndata = True
        else:
            self._owndata = False
        self._memory = memptr.mem
        self._host = np.ndarray(extents, kind, memptr.mem.host, memptr.offset, strides, order)

    # Attributes

    @property
    def shape(self) -> tuple[int, ...]:
        return self._host.shape

    @property
    def dtype(self) -> np.dtype:
        return self._host.dtype

    @property
    def ndim(self) -> int:
        return self._host.ndim

    @property
    def size(self) -> int:
        return self._host.size

    @property
    def itemsize(self) -> int:
        return self._host.itemsize

    @property
    def nbytes(self) -> int:
        return self._host.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        return self._host.strides

    @property
    def flags(self) -> Flags:
        return Flags(self._host, self._owndata)

    @property
    def data(self) -> MemoryPointer:
        """A pointer to the first element: ``a.data.ptr`` is its address on the device."""
        return MemoryPointer(self._memory, address_of(self._host) - address_of(self._memory.host))

    @property
    def device(self) -> Device:
        return Device(self._memory.device_id)

    @property
    def T(self) -> ndarray:
        return self._view(self._host.T)

    def __len__(self) -> int:
        return len(self._host)

    def __repr__(self) -> str:
        return repr(self._host)

    def __str__(self) -> str:
        return str(self._host)

    def __format__(self, spec: str) -> str:
        return format(self._host, spec)

    def __iter__(self) -> Iterator[ndarray]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # To and from the host

    def get(
        self, stream: None = None, order: str = "C", out: np.ndarray | None = None, blocking: bool = True
    ) -> np.ndarray:
        """Return a NumPy array on the host with the values of this array: `out` if given, else a new one."""
        if out is None:
            return np.array(self._host, order=order)
        if not isinstance(out, np.ndarray):
            raise TypeError("out is not a NumPy array")
        if out.dtype != self.dtype or out.shape != self.shape:
            raise ValueError(f"out is {out.dtype}{out.shape}; expected {self.dtype}{self.shape}")
        out[...] = self._host
        return out

    def set(self, arr: np.ndarray, stream: None = None) -> None:
        """Copy a NumPy array of the same shape and dtype from the host into this array."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("only a NumPy array can be set to the device")
        if arr.dtype != self.dtype:
            raise TypeError(f"a {arr.dtype} array cannot be set to a {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"an array of shape {arr.shape} cannot be set to one of shape {self.shape}")
        self._host[...] = arr
        self._memory.wrote(self._host)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            "this array is on the device and NumPy needs a copy on the host: make one with cp.asnumpy(a) or a.get()"
        )

    def item(self) -> Any:
        return self._host.item()

    def tolist(self) -> Any:
        return self._host.tolist()

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host.item())

    def __float__(self) -> float:
        return float(self._host.item())

    def __complex__(self) -> complex:
        return complex(self._host.item())

    def __index__(self) -> int:
        return self._host.__index__()

    # Indexing and shapes

    def __getitem__(self, index: Any) -> ndarray:
        parts, fancy = _index(index)
        if fancy:
            return fresh(self._host[parts])
        # With an Ellipsis in the index NumPy returns a view where it would return a scalar.
        return self._view(self._host[parts if Ellipsis in parts else (*parts, Ellipsis)])

    def __setitem__(self, index: Any, value: Any) -> None:
        parts, fancy = _index(index)
        with np.errstate(all="ignore"):
            self._host[parts] = to_host(value)
        # Indexing with an array copies, so mark everything as written.
        self._memory.wrote(self._host if fancy else self._host[parts if Ellipsis in parts else (*parts, Ellipsis)])

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        extents = shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape
        return self._view_or_fresh(self._host.reshape(extents, order=order))

    def ravel(self, order: str = "C") -> ndarray:
        return self._view_or_fresh(self._host.ravel(order=order))

    def flatten(self, order: str = "C") -> ndarray:
        return fresh(self._host.flatten(order=order))

    def transpose(self, *axes: Any) -> ndarray:
        return self._view(self._host.transpose(*axes))

    def squeeze(self, axis: Any = None) -> ndarray:
        return self._view(self._host.squeeze(axis))

    def view(self, dtype: Any = None) -> ndarray:
        return self._view(self._host.view() if dtype is None else self._host.view(check_dtype(dtype)))

    def copy(self, order: str = "C") -> ndarray:
        return fresh(self._host, order)

    def astype(
        self, dtype: Any, order: str = "K", casting: None = None, subok: None = None, copy: bool = True
    ) -> ndarray:
        if casting is not None or subok is not None:
            raise TypeError("astype takes no casting and no subok on the device")
        kind = check_dtype(dtype)
        if not copy and kind == self.dtype:
            return self
        with np.errstate(all="ignore"):
            return fresh(self._host.astype(kind, order=order), order)

    def fill(self, value: Any) -> None:
        self._host[...] = to_host(value)
        self._memory.wrote(self._host)

    # Reductions

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> ndarray:
        return self._reduce("sum", out, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> ndarray:
        return self._reduce("prod", out, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> ndarray:
        return self._reduce("mean", out, axis=axis, dtype=dtype, keepdims=keepdims)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False) -> ndarray:
        return self._reduce("min", out, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False) -> ndarray:
        return self._reduce("max", out, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False) -> ndarray:
        return self._reduce("all", out, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False) -> ndarray:
        return self._reduce("any", out, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Any = None) -> ndarray:
        return self._reduce("argmin", None, axis=axis)

    def argmax(self, axis: Any = None) -> ndarray:
        return self._reduce("argmax", None, axis=axis)

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        if method != "__call__" or set(kwargs) - {"dtype"}:
            raise TypeError(f"np.{ufunc.__name__} works on device arrays only as a plain call; use cp.asnumpy first")
        host_inputs = [to_host(value) for value in inputs]
        for target in out:
            if not isinstance(target, ndarray):
                raise TypeError("the output of an operation on device arrays must be a device array")
        if out:
            kwargs["out"] = tuple(target._host for target in out)
        with np.errstate(all="ignore"):
            result = ufunc(*host_inputs, **kwargs)
        for target in out:
            target._memory.wrote(target._host)
        if out:
            return out[0] if len(out) == 1 else out
        return tuple(map(fresh, result)) if isinstance(result, tuple) else fresh(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        own = FUNCTIONS.get(name)
        if getattr(np, name, None) is not function or own is None:
            raise TypeError(
                f"the emulator's stand-in for CuPy has no {function.__module__}.{name} for device arrays; "
                "use cp.asnumpy first"
            )
        return own(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if hasattr(np.ndarray, name) and not name.startswith("_"):
            raise AttributeError(
                f"the emulator's stand-in for CuPy has no ndarray.{name}; it needs a GPU, or use cp.asnumpy(a).{name}"
            )
        raise AttributeError(f"'ndarray' object has no attribute '{name}'")

    # Internals

    def _view(self, host: np.ndarray) -> ndarray:
        made = ndarray.__new__(ndarray)
        made._memory, made._host, made._owndata = self._memory, host, False
        return made

    def _view_or_fresh(self, host: np.ndarray) -> ndarray:
        return self._view(host) if np.may_share_memory(host, self._host) else fresh(host)

    def _reduce(self, name: str, out: None, **options: Any) -> ndarray:
        if out is not None:
            raise TypeError(f"on the emulator, {name} takes no out")
        with np.errstate(all="ignore"):
            return fresh(getattr(self._host, name)(**options))


def fresh(host: Any, order: str = "C") -> ndarray:
    """Return a new device array with the values of `host`. `order` "K" and "A" keep a Fortran layout but no other
    strides."""
    values = np.asarray(host)
    if order in "KA":
        order = "F" if values.flags.f_contiguous and not values.flags.c_contiguous else "C"
    made = ndarray(values.shape, values.dtype, order=order)
    made._host[...] = values
    made._memory.wrote(made._host)
    return made


def to_host(value: Any) -> Any:
    """Return `value` as NumPy computes with it: the host's view of a device array, or a scalar as it is.

    Raises TypeError for a NumPy array, as CuPy does.
    """
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return value
    hint = "; copy it to the device first, with cp.asarray" if isinstance(value, (np.ndarray, list, tuple)) else ""
    raise TypeError(f"Unsupported type {type(value)} in an operation on device arrays{hint}")


def address_of(host: np.ndarray) -> int:
    """Return the address of `host` in the memory of this process."""
    return host.__array_interface__["data"][0]


def _index(index: Any) -> tuple[tuple[Any, ...], bool]:
    """Return `index` as a tuple for NumPy, and whether there is an array in it, so that NumPy copies."""
    parts = index if isinstance(index, tuple) else (index,)
    fancy = any(isinstance(part, ndarray) for part in parts)
    for part in parts:
        if not (part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice, ndarray))):
            raise IndexError(
                f"a device array is indexed by integers, slices and device arrays, not by {type(part).__name__}; "
                "a list or NumPy array goes through cp.asarray"
            )
    return tuple(part._host if isinstance(part, ndarray) else part for part in parts), fancy
