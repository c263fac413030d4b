"""NVIDIA's command-line tools for machine code, nvdisasm and cuobjdump: finding them and running them on a cubin."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from climb.toolchain import cache
from climb.toolchain.errors import ToolchainError
from climb.toolchain.packages import site_packages

_TOOLKITS = ("/usr/local/cuda",)
#: nvdisasm fills 40 MB with tables before it reads anything. In large pages that takes a sixth less time; C libraries
#: other than glibc ignore this.
_LARGE_PAGES = "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864"


def run_tool(tool: str, options: tuple[str, ...], cubin: bytes) -> str:
    """Return the output of `tool` for `cubin`, from the cache if it has that. Raises ToolchainError if the tool
    fails."""
    command = (find_tool(tool), *options)

    def make() -> cache.Made:
        import subprocess  # only when a tool runs, so that importing the toolchain is quick
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernel.cubin")
            path.write_bytes(cubin)
            environ = {"GLIBC_TUNABLES": _LARGE_PAGES, **os.environ}
            done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False, env=environ)
        if done.returncode != 0 or not done.stdout.strip():
            raise ToolchainError(f"{tool} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout, {}, {}

    return cache.keep(cache.digest([*command, os.stat(command[0]).st_mtime_ns, cubin]), make)[0]


@functools.cache
def find_tool(tool: str) -> str:
    """Return the path of `tool`: from its pip package, else from CUDA_PATH or CUDA_HOME, else from PATH.

    Raises ToolchainError, naming the package to install, if it is missing.
    """
    import shutil

    program = f"{tool}.exe" if os.name == "nt" else tool
    # Packages for Windows have one more folder, for the architecture: nvidia/cu13/bin/x86_64.
    layouts = (f"nvidia/*/bin/{program}", f"nvidia/*/bin/*/{program}")
    packages = [path for root in site_packages() for one in layouts for path in sorted(root.glob(one), reverse=True)]
    roots = [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    installed = [Path(root, "bin", program) for root in [*roots, *_TOOLKITS]]
    for path in [*packages, *installed]:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    if on_path := shutil.which(tool):
        return on_path
    raise ToolchainError(
        f"reading machine code needs NVIDIA's {tool}, which is not installed; "
        f"install it with `pip install nvidia-cuda-{tool}`"
    )
