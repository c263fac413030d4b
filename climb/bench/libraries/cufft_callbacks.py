"""cuFFT with callbacks: its own kernels gather the points, multiply the spectra and keep the results.

Callbacks are compiled to LTO-IR and linked by cuFFT at run time (cuFFT documentation, "LTO load and store callback
routines"). Its linker takes LTO-IR of its own CUDA version, so the compiler is the NVRTC beside the cuFFT that PyTorch
loads; the book's own kernels use another.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

from climb.bench.libraries.choosing import Prepared
from climb.bench.libraries.cufft import Tiling, backward_plan, forward_plan
from climb.bench.problem import PeerUnavailable

#: The callbacks by the names that cuFFT looks for. Each is compiled by itself. Code that they share has internal
#: linkage, because two callbacks of one plan are linked together.
_CALLBACKS = {
    "LoadReal": r"""
__device__ float cufftJITCallbackLoadReal(void* source, unsigned long long i, void*, void*)
{
    const long long from = place(static_cast<long long>(i), false);
    return from < 0 ? 0.0f : static_cast<const float*>(source)[from];
}
""",
    "LoadComplex": r"""
__device__ float2 cufftJITCallbackLoadComplex(void* spectra, unsigned long long i,
                                              void* factors, void*)
{
    const float2 a = static_cast<const float2*>(spectra)[i];
    const float2 b = static_cast<const float2*>(factors)[i % SPECTRUM];
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
""",
    "StoreReal": r"""
__device__ void cufftJITCallbackStoreReal(void*, unsigned long long i, float value,
                                          void* target, void*)
{
    const long long to = place(static_cast<long long>(i), true);
    if (to >= 0) static_cast<float*>(target)[to] = value;
}
""",
}
#: Values of the enumeration cufftXtCallbackType.
_KINDS = {"LoadReal": 2, "LoadComplex": 0, "StoreReal": 6}


def with_callbacks(source: Any, factors: Any, target: Any, cut: Tiling) -> Prepared:
    """Return a launch of two transforms that convolves ``source`` into ``target`` by this tiling; ``factors`` is a
    spectrum.

    Raises :class:`PeerUnavailable` if cuFFT's compiler cannot be found.
    """
    import cupy
    from nvmath.bindings import cufft

    capability = cupy.cuda.Device().compute_capability
    codes = {name: ctypes.create_string_buffer(lto_ir(callback(name, cut), capability)) for name in _CALLBACKS}

    def set_callback(plan: int, name: str, data: int) -> None:
        # The buffer ends with a zero that is not part of the code. A symbol of 0 means the default name.
        code = codes[name]
        cufft.xt_set_jit_callback(plan, 0, ctypes.addressof(code), len(code) - 1, _KINDS[name], [data])

    def before_forward(plan: int) -> None:
        set_callback(plan, "LoadReal", 0)

    def before_backward(plan: int) -> None:
        set_callback(plan, "LoadComplex", factors.data.ptr)
        set_callback(plan, "StoreReal", target.data.ptr)

    forward, backward = forward_plan(cut, before_forward), backward_plan(cut, before_backward)
    # cuFFT may keep sums of earlier passes in its output, so the last pass alone writes to the target.
    tiles = cupy.empty(cut.points, dtype=cupy.float32)
    spectra = cupy.empty(cut.batch * cut.spectrum, dtype=cupy.complex64)

    def enqueue() -> None:
        forward(source, spectra)
        backward(spectra, tiles)

    kept = (codes, factors)  # cuFFT reads them as long as the plans live
    return Prepared(lambda: enqueue() if kept else None, {"choice": f"{cut}, with callbacks"})


def callback(name: str, cut: Tiling) -> str:
    """The CUDA C++ of a callback (``"LoadReal"``, ``"LoadComplex"`` or ``"StoreReal"``) for a tiling."""
    shared = cut.source() + f"\n__device__ constexpr unsigned long long SPECTRUM = {cut.spectrum};\n"
    return f"namespace {{\n{shared}}}\n{_CALLBACKS[name]}"


def lto_ir(source: str, compute_capability: str) -> bytes:
    """Compile device functions to LTO-IR for ``compute_capability`` (``"90"``), by the NVRTC of PyTorch's CUDA.

    Raises :class:`PeerUnavailable` if it is missing, and RuntimeError with the compiler's log for wrong code.
    """
    nvrtc = _compiler()
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"callbacks.cu", 0, None, None))
    try:
        given = (f"-arch=sm_{compute_capability}", "-dlto", "--relocatable-device-code=true", "-std=c++17")
        options = (ctypes.c_char_p * len(given))(*(option.encode() for option in given))
        failed = nvrtc.nvrtcCompileProgram(program, len(given), options)
        size = ctypes.c_size_t()
        if failed:
            _check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
            log = ctypes.create_string_buffer(size.value)
            _check(nvrtc.nvrtcGetProgramLog(program, log))
            raise RuntimeError(f"NVRTC refused a callback:\n{log.value.decode()}")
        _check(nvrtc.nvrtcGetLTOIRSize(program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        _check(nvrtc.nvrtcGetLTOIR(program, code))
        return code.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def _compiler() -> ctypes.CDLL:
    """NVRTC, and nvJitLink for cuFFT's linking, from the folder from which cuFFT was loaded."""
    folder = folder_of_library("libcufft.so", Path("/proc/self/maps").read_text(encoding="utf-8"))
    try:
        ctypes.CDLL(str(next(folder.glob("libnvJitLink.so.*"))), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(next(folder.glob("libnvrtc.so.*"))))
    except (StopIteration, OSError) as error:
        raise PeerUnavailable(f"cuFFT's callbacks need NVRTC and nvJitLink beside it, in {folder}: {error!r}") from None


def folder_of_library(name: str, maps: str) -> Path:
    """Return the folder of a loaded library, from the text of /proc/self/maps. Raises :class:`PeerUnavailable`."""
    for line in maps.splitlines():
        path = line[line.find("/") :] if "/" in line else ""
        if Path(path).name.startswith(name):
            return Path(path).parent
    raise PeerUnavailable(f"{name} is not loaded")


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"NVRTC returned the error {status}")
