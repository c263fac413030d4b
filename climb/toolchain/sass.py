"""SASS, registers, shared memory and spills of a compiled kernel, with no GPU: by NVIDIA's own tools.

nvdisasm 13 says of NVRTC 12's cubins that it disassembles an "old format" and leaves its dataflow analysis out.
That analysis only names the targets of indirect branches; opcodes and operands are the same as cuobjdump's,
which a test holds for every architecture.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from climb.toolchain import cache
from climb.toolchain.diagnostics import shorten
from climb.toolchain.errors import ToolchainError
from climb.toolchain.includes import site_packages
from climb.toolchain.nvrtc import Compiled, shown_prefixes


@dataclass(frozen=True)
class Instruction:
    """One machine instruction.

    `offset` in bytes from the kernel's start; `predicate` such as "@!P0" or ""; `opcode` with all its
    modifiers, such as "LDG.E.128.CONSTANT"; `operands` as nvdisasm writes them; `line` of `file`, a name of
    `Compiled.sources` (0 and "" where the compiler noted none).
    """

    offset: int
    predicate: str
    opcode: str
    operands: str
    line: int
    file: str

    @property
    def mnemonic(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.split(".", 1)[0]

    def __str__(self) -> str:
        return f"/*{self.offset:04x}*/ {self.predicate:>5} {self.opcode} {self.operands}".rstrip()


@dataclass(frozen=True)
class Resources:
    """What one kernel takes.

    `registers` per thread. `shared_bytes` per block, as the source declares it; `reserved_shared_bytes` is what the
    system adds and the cubin counts (1024 from sm_90 on, where the module has any). `stack_bytes` per thread: its
    arrays in local memory and what was spilled; `local_bytes` is all of its local memory. `spill_store_bytes` and
    `spill_load_bytes` are ptxas's count over the code: what its spilling instructions move if each runs once.
    `constant_bytes` holds the kernel's parameters and its constants.
    """

    registers: int
    shared_bytes: int
    reserved_shared_bytes: int
    stack_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    barriers: int
    constant_bytes: int

    @property
    def spills(self) -> bool:
        return bool(self.spill_store_bytes or self.spill_load_bytes)


def disassemble(compiled: Compiled, name: str) -> tuple[Instruction, ...]:
    """The instructions of kernel `name` (a name expression, or a kernel's name), without padding at its end.

    Raises KernelNotFound for a kernel that `compiled` has not, CompileError if ptxas refuses the source,
    ToolchainError if nvdisasm is missing.
    """
    return _all_instructions(compiled)[compiled.lowered(name)]


def resources(compiled: Compiled, name: str) -> Resources:
    """What kernel `name` takes. Raises as `disassemble` does (the tool is cuobjdump)."""
    found = _all_resources(compiled).get(compiled.lowered(name))
    if found is None:
        raise ToolchainError(f"ptxas and cuobjdump reported nothing about {name!r} of {compiled.filename}")
    return found


@functools.lru_cache(maxsize=256)
def _all_instructions(compiled: Compiled) -> dict[str, tuple[Instruction, ...]]:
    listing = _run("nvdisasm", ("--print-code", "--print-line-info-inline"), compiled.cubin)
    prefixes = shown_prefixes(compiled.include_dirs)
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    file, line, inside = "", 0, False
    for row in listing.splitlines():
        if section := _SECTION.match(row):
            current = found.setdefault(section[1], [])
            file, line, inside = "", 0, False
        elif place := _PLACE.match(row):
            # From the innermost function that was inlined outwards: what CUDA's headers do, their caller does.
            if not inside or file.startswith("cuda/"):
                file, line = shorten(place[1], prefixes), int(place[2])
            inside = True
        elif code := _CODE.match(row):
            inside = False
            opcode, _, operands = code["rest"].strip().partition(" ")
            offset, predicate = int(code["offset"], 16), (code["predicate"] or "").strip()
            current.append(Instruction(offset, predicate, opcode, operands.strip(), line, file))
    return {name: _without_padding(instructions) for name, instructions in found.items()}


_SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$]+)\s*,")
_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_CODE = re.compile(r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s+(?P<predicate>@!?U?P\w+\s)?\s*(?P<rest>[^;]+?)\s*;")


def _without_padding(instructions: list[Instruction]) -> tuple[Instruction, ...]:
    """`instructions` up to the branch to itself that ends a kernel and the NOPs behind it."""
    end = len(instructions)
    while end and instructions[end - 1].opcode == "NOP":
        end -= 1
    if end and instructions[end - 1].opcode == "BRA":
        end -= 1
    return tuple(instructions[:end])


@functools.lru_cache(maxsize=256)
def _all_resources(compiled: Compiled) -> dict[str, Resources]:
    usage = _run("cuobjdump", ("--dump-resource-usage",), compiled.cubin)
    reported = {match["name"]: match for match in _REPORT.finditer(compiled.ptxas_report)}
    found = {}
    for name, row in re.findall(r"Function ([\w$]+):\s*\n\s*(\S[^\n]*)", usage):
        fields = {key: int(value) for key, value in re.findall(r"([A-Z]+(?:\[\d+\])?):(\d+)", row)}
        report = reported.get(name)
        if report is None:  # a device function that was not inlined
            continue
        shared = re.search(r"(\d+) bytes smem", report["used"])
        barriers = re.search(r"(\d+) barriers", report["used"])
        declared = int(shared[1]) if shared else 0
        found[name] = Resources(
            registers=fields["REG"],
            shared_bytes=declared,
            reserved_shared_bytes=fields["SHARED"] - declared,
            stack_bytes=fields["STACK"],
            local_bytes=fields["STACK"] + fields["LOCAL"],
            spill_store_bytes=int(report["stores"]),
            spill_load_bytes=int(report["loads"]),
            barriers=int(barriers[1]) if barriers else 0,
            constant_bytes=sum(value for key, value in fields.items() if key.startswith("CONSTANT")),
        )
    return found


_REPORT = re.compile(
    r"Compiling entry function '(?P<name>[^']+)'.*?bytes stack frame, (?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads\s+ptxas info\s*: (?P<used>Used [^\n]*)",
    re.DOTALL,
)


def _run(tool: str, options: tuple[str, ...], cubin: bytes) -> str:
    """What `tool` prints for `cubin`; now, or kept since it did."""
    command = (_find_tool(tool), *options)

    def make() -> cache.Made:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernel.cubin")
            path.write_bytes(cubin)
            done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not done.stdout.strip():
            raise ToolchainError(f"{tool} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout, {}, {}

    return cache.keep(cache.digest([*command, os.stat(command[0]).st_mtime_ns, cubin]), make)[0]


_TOOLKITS = ("/usr/local/cuda",)


@functools.cache
def _find_tool(tool: str) -> str:
    """The path of `tool`: from its package, from CUDA_PATH or CUDA_HOME, or from PATH, in this order."""
    suffix = ".exe" if os.name == "nt" else ""
    pattern = f"nvidia/*/bin/{tool}{suffix}"
    packages = [path for root in site_packages() for path in sorted(root.glob(pattern), reverse=True)]
    roots = [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    installed = [Path(root, "bin", tool + suffix) for root in [*roots, *_TOOLKITS]]
    for path in [*packages, *installed]:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    if on_path := shutil.which(tool):
        return on_path
    raise ToolchainError(
        f"reading machine code needs {tool}, which is not here; the package nvidia-cuda-{tool} brings it"
    )
