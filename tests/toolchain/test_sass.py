"""SASS and resources of compiled kernels, read without a GPU."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from toolchain.sources import ARCHITECTURES, BETWEEN, COPY, HUNGRY, NEWEST, OLDEST, TILE
from tools.thorough import thorough

from climb.toolchain import Instruction, KernelNotFound, compile_cuda, disassemble, resources
from climb.toolchain.branch_targets import labels
from climb.toolchain.tools import find_tool


class TestSass:
    @pytest.mark.parametrize("arch", [OLDEST, *(thorough(arch) for arch in BETWEEN), NEWEST])
    def test_nvdisasm_agrees_with_cuobjdump(self, arch: str) -> None:
        """nvdisasm 13 warns that it switches to an old format for NVRTC 12's cubins; its instructions must be right."""
        compiled = compile_cuda(TILE + COPY, filename="both.cu", name_expressions=["flip<32>"], arch=arch)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.cubin")
            path.write_bytes(compiled.cubin)
            listing = subprocess.run(
                [find_tool("cuobjdump"), "-sass", str(path)], capture_output=True, text=True, check=True
            ).stdout
        for kernel, body in re.findall(r"Function : (\S+)\n(.*?)\n\s*\.{5,}", listing, re.DOTALL):
            theirs = re.findall(r"/\*([0-9a-f]{4})\*/\s+(@!?U?P\w+)?\s*([\w.]+)", body)
            ours = [(f"{i.offset:04x}", i.predicate, i.opcode) for i in disassemble(compiled, kernel)]
            assert len(ours) >= 8
            assert ours == theirs[: len(ours)]
            assert {opcode for _, _, opcode in theirs[len(ours) :]} <= {"BRA", "NOP"}

    def test_instructions_have_their_source_lines(self) -> None:
        compiled = compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"])
        lines = {
            i.mnemonic: i.line
            for i in disassemble(compiled, "flip<32>")
            if i.mnemonic in ("LDG", "STS", "LDS", "STG", "BAR")
        }
        assert lines == {"LDG": 4, "STS": 4, "BAR": 5, "LDS": 6, "STG": 6}
        assert {i.file for i in disassemble(compiled, "flip<32>")} == {"tile.cu"}

    def test_predicates_and_operands_are_apart_from_the_opcode(self) -> None:
        instructions = disassemble(compile_cuda(COPY, filename="copy.cu"), "copy")
        (leave,) = [i for i in instructions if i.opcode == "EXIT" and i.predicate]
        assert re.fullmatch(r"@!?P\d", leave.predicate)
        (load,) = [i for i in instructions if i.mnemonic == "LDG"]
        assert load.opcode.startswith("LDG.E.128")
        assert re.match(r"R\d+, ", load.operands)
        assert instructions[-1].opcode == "EXIT"

    def test_unknown_kernel_is_refused(self) -> None:
        with pytest.raises(KernelNotFound):
            disassemble(compile_cuda(COPY, filename="copy.cu"), "flip")

    @pytest.mark.parametrize("arch", ARCHITECTURES)
    def test_shared_memory_is_what_the_source_declares(self, arch: str) -> None:
        found = resources(compile_cuda(TILE, filename="tile.cu", name_expressions=["flip<32>"], arch=arch), "flip<32>")
        assert found.shared_bytes == 32 * 33 * 4
        assert found.reserved_shared_bytes == (1024 if int(arch[3:]) >= 90 else 0)
        assert found.barriers == 1
        assert 0 < found.registers < 64

    def test_register_limit_makes_spills(self) -> None:
        free = resources(compile_cuda(HUNGRY, filename="hungry.cu"), "hungry")
        assert not free.spills
        assert free.local_bytes == 0
        assert free.registers > 40
        tight = resources(compile_cuda(HUNGRY, filename="hungry.cu", options=["-maxrregcount=32"]), "hungry")
        assert tight.spills
        assert tight.registers == 32
        assert tight.stack_bytes >= (40 - 32) * 4
        assert tight.spill_store_bytes > 0
        assert tight.spill_load_bytes > 0

    def test_constant_bytes_hold_the_parameters(self) -> None:
        two = resources(compile_cuda(HUNGRY, filename="hungry.cu"), "hungry")
        three = resources(compile_cuda(COPY, filename="copy.cu"), "copy")
        assert three.constant_bytes - two.constant_bytes == 20 - 12  # pointer, pointer, int against pointer, int

    def test_labels_are_where_their_branches_lead(self) -> None:
        compiled = compile_cuda(LOOP, filename="loop.cu")
        found, instructions = labels(compiled, "loop"), disassemble(compiled, "loop")
        used = {label for i in instructions for label in used_by(i)}
        assert used <= set(found)
        back = [i for i in instructions if i.mnemonic == "BRA" and any(found[one] < i.offset for one in used_by(i))]
        assert back, "the loop has a branch backwards"


LOOP = 'extern "C" __global__ void loop(float* a, int n) { for (int i = 0; i < n; i++) a[i] = a[i] * a[i + n]; }'


def used_by(instruction: Instruction) -> list[str]:
    return re.findall(r"\.L_x_\d+", instruction.operands)
