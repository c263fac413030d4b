"""The beginning of a chapter's first code cell, which makes ``climb`` and ``kernels`` importable.

In a clone they are beside ``book/``. A notebook that was downloaded, or opened in Colab, has no such folder: if
``_config.yml`` has the repository's address, the cell installs the book from there. Every chapter contains the address,
because Colab opens notebooks from the repository itself; ``climb address`` writes it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

IN_CLONE = 'sys.path.insert(0, "..")  # the repository: climb/ and kernels/ lie beside book/\n'
_PLAIN = f"import sys\n\n{IN_CLONE}"
_INSTALLING = f"""import subprocess
import sys

{IN_CLONE}try:
    from climb.paths import make_kernels_importable
except ImportError:  # this notebook is not in the repository: install the book from there
    book = BOOK
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", book], check=True)
    from climb.paths import make_kernels_importable
make_kernels_importable()
"""
_KNOWN = re.compile("|".join((re.escape(_INSTALLING).replace("BOOK", r'"[^"\n]*"'), re.escape(_PLAIN))))


@dataclass(frozen=True)
class Address:
    """The address of the repository: ``url`` is "" if it is not published."""

    url: str = ""
    branch: str = "main"

    @property
    def requirement(self) -> str:
        """The requirement for pip: the package with the extra that a chapter needs."""
        return f"climb-to-the-roofline[notebook] @ git+{self.url}@{self.branch}"


def read_address(config: Path) -> Address:
    """Read the address in ``_config.yml``: ``repository.url`` and ``repository.branch``."""
    import yaml

    settings = (yaml.safe_load(config.read_text(encoding="utf-8")) or {}).get("repository") or {}
    url = (settings.get("url") or "").strip().rstrip("/")
    return Address(url.removesuffix(".git"), settings.get("branch") or "main")


def first_cell(address: Address) -> str:
    """Return the lines that the first code cell of every chapter begins with."""
    return _INSTALLING.replace("BOOK", json.dumps(address.requirement)) if address.url else _PLAIN


def replaced(source: str, address: Address) -> str:
    """Return a first cell with its beginning for another address. Raises ValueError if it begins differently."""
    known = _KNOWN.match(source)
    if not known:
        raise ValueError(f"the first code cell does not begin with {_PLAIN!r}, or with what `climb address` writes")
    return first_cell(address) + source[known.end() :]


def write_address(chapter: Path, address: Address) -> bool:
    """Write the address into the first code cell of a notebook, and nothing else. Returns whether it changed.

    Raises ValueError like :func:`replaced`.
    """
    import nbformat

    text = chapter.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    cell = next((cell for cell in notebook.cells if cell.cell_type == "code"), None)
    if cell is None or (source := replaced(cell.source, address)) == cell.source:
        return False
    cell.source = source
    chapter.write_text(nbformat.writes(notebook) + "\n" * text.endswith("\n"), encoding="utf-8")
    return True
