"""Compute products on this GPU, compare them with the emulator's, and write the record and the tests' samples."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import hardware, records
from climb.toolchain import compile_cuda
from climb.toolchain.nvrtc import nvrtc_version
from climb.validation.schema import TensorRecord
from climb.validation.tensor_products import kernels, layouts
from climb.validation.tensor_products.comparing import Launch, run, samples
from climb.validation.tensor_products.forms import FORMS, Form

ARCH = "sm_90a"


def source(forms: Iterable[Form]) -> str:
    """One program with the kernels of some forms and of all layouts."""
    return kernels.HEAD + "".join([*map(kernels.kernel, forms), *map(layouts.kernel, layouts.LAYOUTS)])


@contextmanager
def gpu(forms: Iterable[Form]) -> Iterator[Launch]:
    """A launcher of the kernels on this GPU."""
    import cupy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "products.cubin")
        path.write_bytes(compile_cuda(source(forms), filename="products.cu", arch=ARCH, whole=True).cubin)
        module = cupy.RawModule(path=str(path))

        def launch(name: str, grid: int, block: int, arrays: list[np.ndarray], count: int) -> np.ndarray:
            held = [cupy.asarray(each) for each in arrays]
            kernel, shared = module.get_function(name), 0
            if name.startswith("layout_"):
                kernel.max_dynamic_shared_size_bytes = shared = layouts.SHARED
            kernel((grid,), (block,), (*held, np.int32(count)), shared_mem=shared)
            return cupy.asnumpy(held[-1])

        yield launch


def compare(forms: Iterable[Form], launch: Launch, sums: int, seed: int, folder: Path | None) -> dict[str, Any]:
    """Compute about `sums` sums of each form and count those that differ from the emulator's, by form.

    With `folder`, saves samples there, and what the descriptors read.
    """
    found: dict[str, Any] = {}
    saved: dict[str, np.ndarray] = {}
    for form in forms:
        rng = np.random.default_rng([seed, *form.name.encode()])
        products = run(form, launch, max(8, sums // (form.m * form.n) // 4 * 4), rng)
        found[form.name] = {"sums": products.d.size, "different": int(products.different().sum())}
        saved.update(samples(products, rng))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(folder / "tensor_products.npz", **saved)
        which = layouts.cases()
        places = {each.name: layouts.read(each, launch, which) for each in layouts.LAYOUTS}
        np.savez_compressed(folder / "descriptors.npz", cases=which.astype(np.int16), **places)
    return found


def record_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file with the outcome on a GPU; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "emulator" / "tensor.json"


def record(gpu: str = records.DEFAULT_GPU) -> TensorRecord:
    """The committed outcome on a GPU."""
    return records.load(record_path(records.gpu_with("emulator/tensor.json", gpu)), TensorRecord)


def record_products(sums: int, seed: int, folder: Path | None, keep: Path | None) -> tuple[Path, dict[str, Any]]:
    """Compare all forms on this GPU and write the outcome. Returns the file and the record."""
    with gpu(FORMS.values()) as launch:
        found = compare(FORMS.values(), launch, sums, seed, keep)
    device = hardware.device_block()
    out = {
        **hardware.origin(),
        "nvrtc": ".".join(map(str, nvrtc_version())), "device": device, "seed": seed, "forms": found,
    }  # fmt: skip
    path = record_path(hardware.gpu_slug(device["name"]), folder)
    records.save(path, out, TensorRecord)
    return path, out
