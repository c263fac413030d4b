"""Small programs compile faster without what NVRTC declares for textures and for CUDA's runtime.

NVRTC parses its own declarations before every source. With ``-minimal`` it leaves out textures, surfaces, the runtime's
types and functions, and launches from device code (NVRTC User Guide, "Supported Compile Options"), which saves a third
of the 20 ms that a small kernel takes. A source that names none of those compiles to the same PTX either way, but for
the order of neighbouring loads in some large kernels. Large sources take so long that they gain nothing: they keep the
declarations, so that their machine code can be made from the same PTX (`Program`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from climb.toolchain.nvrtc import nvrtc_version

#: Names in a source that show that it needs the declarations: the runtime's (cudaError_t, CUtensorMap), textures and
#: surfaces, a launch. A variable called `text` counts as one too, which costs only time.
_OMITTED = re.compile(r"cuda[A-Z]|\bCU[a-z]|\b_*(?:tex|surf)|<<<")
#: The most characters of a small source, with its headers. One that is longer takes 50 ms or more.
SMALL = 2000


def flags(texts: Sequence[str]) -> list[str]:
    """Return the flags that leave the declarations out; empty if `texts`, a source and its headers, may need them, or
    are not small."""
    if nvrtc_version() < (12, 8) or sum(map(len, texts)) > SMALL or any(map(_OMITTED.search, texts)):
        return []
    return ["-minimal"]
