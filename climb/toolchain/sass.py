"""SASS, registers, shared memory and spills of a compiled kernel, read without a GPU by NVIDIA's own tools.

nvdisasm 13 warns that NVRTC 12's cubins have an "old format"; a test compares the opcodes with cuobjdump's for every
architecture. Its dataflow analysis, a third of its time, only finds the targets of indirect branches, which nothing
here reads, so it is left out.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from climb.toolchain.compilation import Compiled
from climb.toolchain.diagnostics import shorten
from climb.toolchain.errors import ToolchainError
from climb.toolchain.file_names import shown_prefixes
from climb.toolchain.tools import run_tool

# nvdisasm's listing is read as text: `nvdisasm -json` (13.5) has no callers of inlined code and no labels, and takes
# the operand PR of P2R for a predicate.
SECTION_LINE = re.compile(r"^\s*\.section\s+\.text\.([\w$]+)\s*,")
_PLACE_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
INSTRUCTION_LINE = re.compile(
    r"^\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s+(?P<predicate>@!?U?P\w+\s)?\s*(?P<rest>[^;]+?)\s*;"
)


@dataclass(frozen=True)
class Instruction:
    """One machine instruction.

    `offset` counts bytes from the kernel's start. `predicate` is such as "@!P0", or "". `opcode` has all its modifiers,
    such as "LDG.E.128.CONSTANT"; `operands` are as nvdisasm prints them. `line` is a line of `file`, a name of
    `Compiled.sources`; they are 0 and "" if the compiler recorded none.
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
    """The resources of one kernel.

    `registers` are per thread. `shared_bytes` are per block, as the source declares them; `reserved_shared_bytes` are
    those that the system adds (1024 from sm_90 on if the module uses shared memory). `stack_bytes` are per thread and
    hold its arrays in local memory and its spilled registers; `local_bytes` are all of a thread's local memory.
    `spill_store_bytes` and `spill_load_bytes` are ptxas's: the bytes moved if each spilling instruction runs once.
    `constant_bytes` hold the kernel's parameters and constants.
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
        """Return whether registers were spilled to local memory."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)


def disassemble(compiled: Compiled, name: str) -> tuple[Instruction, ...]:
    """Return the instructions of kernel `name` (a name expression or a lowered name), without the padding after them.

    Raises KernelNotFound if `compiled` has no such kernel, CompileError if ptxas refuses the source, ToolchainError
    if nvdisasm is missing.
    """
    return _all_instructions(compiled)[compiled.lowered(name)]


def resources(compiled: Compiled, name: str) -> Resources:
    """Return the resources of kernel `name`. Raises like `disassemble`; the tool is cuobjdump."""
    found = _all_resources(compiled).get(compiled.lowered(name))
    if found is None:
        raise ToolchainError(f"ptxas and cuobjdump report nothing about {name!r} of {compiled.filename}")
    return found


def listing(compiled: Compiled) -> str:
    """Return nvdisasm's listing of all kernels, with labels and source lines. Raises like `disassemble`.

    nvdisasm takes 0.2 s to start, whatever it reads, so all readers of machine code share one listing.
    """
    return run_tool("nvdisasm", ("--print-code", "--print-line-info-inline", "--no-dataflow"), compiled.cubin)


@functools.lru_cache(maxsize=256)
def _all_instructions(compiled: Compiled) -> dict[str, tuple[Instruction, ...]]:
    prefixes = shown_prefixes(compiled.include_dirs)
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    file, line, inside = "", 0, False
    for row in listing(compiled).splitlines():
        if section := SECTION_LINE.match(row):
            current = found.setdefault(section[1], [])
            file, line, inside = "", 0, False
        elif place := _PLACE_LINE.match(row):
            # Places run from the innermost inlined function outwards; code of CUDA's headers counts for its caller.
            if not inside or file.startswith("cuda/"):
                file, line = shorten(place[1], prefixes), int(place[2])
            inside = True
        elif code := INSTRUCTION_LINE.match(row):
            inside = False
            opcode, _, operands = code["rest"].strip().partition(" ")
            offset, predicate = int(code["offset"], 16), (code["predicate"] or "").strip()
            current.append(Instruction(offset, predicate, opcode, operands.strip(), line, file))
    return {name: _without_padding(instructions) for name, instructions in found.items()}


def _without_padding(instructions: list[Instruction]) -> tuple[Instruction, ...]:
    """Return `instructions` without the branch to itself at a kernel's end and the NOPs after that branch."""
    end = len(instructions)
    while end and instructions[end - 1].opcode == "NOP":
        end -= 1
    if end and instructions[end - 1].opcode == "BRA":
        end -= 1
    return tuple(instructions[:end])


@functools.lru_cache(maxsize=256)
def _all_resources(compiled: Compiled) -> dict[str, Resources]:
    usage = run_tool("cuobjdump", ("--dump-resource-usage",), compiled.cubin)
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
