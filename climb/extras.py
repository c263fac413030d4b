"""The extras of the package: which of them installs a module that is missing."""

from __future__ import annotations

#: The extra that installs a module, by the module's name or the first part of it.
_EXTRAS = {
    "cupy": "gpu",
    "cupyx": "gpu",
    "cupy_backends": "gpu",
    "cuda.bench": "gpu",
    "cuda.compute": "gpu",
    "torch": "gpu",
    "IPython": "book",
    "matplotlib": "book",
    "msgspec": "book",
    "nbconvert": "book",
    "pygments": "book",
    "hypothesis": "test",
    "pytest": "test",
}


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Say what to install for a module that is not there; None for one that no extra brings."""
    name = error.name or ""
    extra = _EXTRAS.get(name) or _EXTRAS.get(name.split(".")[0])
    return f"it needs {name}, which is not installed: pip install '.[{extra}]'" if extra else None
