"""Orders of modifiers: the emulator takes those that ptxas takes, and no other; and targets that lack an instruction.

`data/opcode_forms.txt` has one instruction of each kind, which ptxas accepts as it is written there.
"""

from __future__ import annotations

import random
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from harness import Device, run_ptx

from climb.emulator import UnsupportedInstruction, isa, load
from climb.emulator.isa.architectures import lacks
from climb.emulator.isa.spelling import canonical
from tests.tools.thorough import choose

FORMS = dict(
    line.rstrip(";\n").partition(" ")[::2]
    for line in (Path(__file__).parent / "data" / "opcode_forms.txt").read_text().splitlines(True)
)
REGISTERS = {"r": "b32", "rd": "b64", "rs": "b16", "f": "f32", "fd": "f64", "p": "pred", "rq": "b128"}
PTXAS = Path(sysconfig.get_paths()["purelib"], "nvidia", "cuda_nvcc", "bin", "ptxas")
needs_ptxas = pytest.mark.skipif(not PTXAS.exists(), reason="no ptxas in the environment")


def module(*instructions: str, target: str = "sm_90a") -> str:
    """A kernel of these instructions, with registers of every kind."""
    head = [".version 8.8", f".target {target}", ".address_size 64", ".shared .align 128 .b8 sym[1024];"]
    registers = [f".reg .{kind} %{name}<99>;" for name, kind in REGISTERS.items()]
    return "\n".join([*head, ".visible .entry k(.param .u64 p) {", *registers, *instructions, "ret;", "}\n"])


def refusal(text: str, folder: Path, target: str = "sm_90a") -> str:
    """The errors that ptxas reports for a module; empty if it accepts the module."""
    file = folder / f"{abs(hash(text))}.ptx"
    file.write_text(text)
    command = [str(PTXAS), f"-arch={target}", "-O0", "-o", "/dev/null", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def spellings(opcode: str, several: int) -> Iterator[str]:
    """Other orders of an opcode's modifiers: each two neighbours swapped, and some random orders."""
    head, *modifiers = opcode.split(".")
    chance = random.Random(opcode)
    orders = [[*modifiers[:i], modifiers[i + 1], modifiers[i], *modifiers[i + 2 :]] for i in range(len(modifiers) - 1)]
    orders += [chance.sample(modifiers, len(modifiers)) for _ in range(several)]
    yield from dict.fromkeys(text for each in orders if (text := ".".join([head, *each])) != opcode)


@needs_ptxas
def test_ptxas_accepts_every_order_that_the_emulator_accepts(tmp_path):
    """An order that exchanges types is another instruction, which needs other registers."""
    accepted = [
        f"{text} {operands};"
        for opcode, operands in FORMS.items()
        for text in (opcode, *spellings(opcode, choose(1, 8)))
        if (isa.lookup(text) is None and canonical(text) != text) or text == opcode
        if sorted(canonical(text).split(".")) == sorted(text.split("."))
        if canonical(text) == canonical(opcode) or text == opcode
    ]
    assert len(accepted) > len(FORMS) + 300
    assert refusal(module(*accepted), tmp_path) == ""


@needs_ptxas
def test_the_emulator_refuses_the_orders_that_ptxas_refuses_and_no_other(tmp_path):
    pairs = [(opcode, text) for opcode in FORMS for text in spellings(opcode, choose(1, 4)) if isa.lookup(text) is None]
    refused = [(opcode, text) for opcode, text in pairs if canonical(text) == text]
    refused = random.Random(5).sample(refused, choose(24, len(refused)))
    with ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda pair: refusal(module(f"{pair[1]} {FORMS[pair[0]]};"), tmp_path), refused)
    assert [text for (_, text), what in zip(refused, said, strict=True) if not what] == []


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("ldmatrix.sync.aligned.x4.m8n8.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
        ("ldmatrix.sync.aligned.x2.trans.m8n8.shared::cta.b16", "ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16"),
        ("ld.global.acquire.gpu.b32", "ld.acquire.gpu.global.b32"),
        ("st.global.release.gpu.b32", "st.release.gpu.global.b32"),
        ("st.shared.v4.volatile.u32", "st.volatile.shared.v4.u32"),
        ("ld.weak.global.f32", "ld.global.f32"),
        ("mul.s32.lo", "mul.s32.lo"),  # `lo` is part of the name
        ("cp.bulk.async.commit_group", "cp.bulk.async.commit_group"),
    ],
)
def test_an_order_has_one_usual_spelling(text, usual):
    assert canonical(text) == usual


def test_an_instruction_in_another_order_runs_as_in_the_usual_one():
    x = np.array([3, 0xFFFFFFFF], np.uint32)
    (found,) = run_ptx("add.s32.sat %o0, %i0, 5;", [("s32", x.view(np.int32))], ["s32"])
    assert found.tolist() == [8, 4]


def test_an_opcode_in_no_order_is_refused_by_its_own_name():
    with pytest.raises(UnsupportedInstruction, match=r"add\.sat\.sat\.s32 is not supported"):
        load(module("add.sat.sat.s32 %r1, %r2, %r3;")).kernel("k")


SPECIFIC = {
    "setmaxnreg.inc.sync.aligned.u32": "40", "wgmma.fence.sync.aligned": "",
    "tensormap.replace.tile.global_address.global.b1024.b64": "[%rd1], %rd2",
}  # fmt: skip


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120"])
def test_ptxas_refuses_what_the_target_lacks(target, tmp_path):
    for opcode, operands in SPECIFIC.items():
        text = module(f"{opcode} {operands};", target=target)
        assert bool(refusal(text, tmp_path, target)) == bool(lacks(opcode, target)), (opcode, target)


def test_a_module_for_sm_90_must_not_set_registers():
    source = 'extern "C" __global__ void k() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); }'
    Device(source, arch="sm_90a").kernel("k")
    with pytest.raises(UnsupportedInstruction, match="needs the target sm_90a, and this module is for sm_90"):
        Device(source).kernel("k")
