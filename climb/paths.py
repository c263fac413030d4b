"""The places of the book's own files: beside the package in a checkout, inside it when it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
#: The working directory in which ``python -m climb...`` finds this package; in a checkout, the repository's.
IMPORT_ROOT = PACKAGE.parent
#: Whether the package stands in a checkout of the repository, where records can be written.
IN_CHECKOUT = (IMPORT_ROOT / "pyproject.toml").is_file() and (IMPORT_ROOT / "kernels").is_dir()
#: The folder that holds ``kernels/`` and ``records/``.
ROOT = IMPORT_ROOT if IN_CHECKOUT else PACKAGE / "_book"
KERNELS = ROOT / "kernels"
RECORDS = ROOT / "records"


def make_kernels_importable() -> None:
    """Put the folder of ``kernels`` first on the import path: ``import kernels.tiling.matmul`` finds the book's own."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
