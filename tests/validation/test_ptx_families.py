"""The table of PTX's instruction families: complete, and true of the registry and of the counters."""

from __future__ import annotations

import numpy as np
import pytest

from climb.emulator import UnsupportedInstruction, load, run
from climb.emulator.isa import lookup, registry
from climb.validation.ptx_families import BY_THE_PARSER, FAMILIES, families

#: The emulator's own opcodes, which no PTX text contains.
OWN = {"frame", "named"}


def test_every_registered_instruction_is_in_a_family() -> None:
    named = {form.partition(".")[0] for members in FAMILIES.values() for form in members.values()}
    registered = {mnemonic for pattern in registry.patterns() for mnemonic in pattern.mnemonics()}
    assert registered - named == OWN


def test_every_instruction_of_a_family_is_in_one_column() -> None:
    for family in families():
        listed = [*family.runs, *family.counted, *family.refused]
        assert sorted(listed) == sorted(FAMILIES[family.name])


def test_no_form_of_a_refused_instruction_is_registered() -> None:
    """Otherwise the form that stands for the instruction is badly chosen."""
    starts = {opcode for pattern in registry.patterns() for opcode in _starts(pattern)}
    for family in families():
        for name in family.refused:
            form = FAMILIES[family.name][name]
            assert form not in BY_THE_PARSER and lookup(form) is None
            if " " not in name and name.partition(".")[0] not in ("add", "sub", "fma", "shfl", "vote"):
                assert not {one for one in starts if one == name or one.startswith(f"{name}.")}, name


def _starts(pattern: registry.Pattern) -> set[str]:
    """The opcodes of a pattern; one of each mnemonic is enough where there are many."""
    return {"".join(spelling[:1]).rstrip(".") for spelling in pattern.spellings} | pattern.mnemonics()


def test_counted_accesses_are_counted_and_others_are_not() -> None:
    source = """__global__ void k(const float* x, float* y, int* sums) {
    __shared__ float tile[32];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();
    atomicAdd(&sums[t % 4], __shfl_sync(~0u, t, 0) + __popc(t));
    y[t] = tile[31 - t];
}"""
    args = [np.ones(32, np.float32), np.zeros(32, np.float32), np.zeros(4, np.int32)]
    counters = run(source, grid=1, block=32, args=args).counters
    assert {line.kind for line in counters.lines} == {
        "global load", "global store", "global atomic", "shared load", "shared store"
    }  # fmt: skip
    counted = {name for family in families() for name in family.counted}
    assert {"ld", "st", "atom", "red", "cp.async", "ldmatrix"} <= counted
    assert not counted & {"add", "shfl.sync", "tex", "suld", "barrier", "membar", "mbarrier.init", "cvta"}


@pytest.mark.parametrize("family", [family for family in families() if family.refused], ids=lambda each: each.name)
def test_what_the_table_calls_refused_is_refused_by_its_full_opcode(family) -> None:
    for name in family.refused:
        form = FAMILIES[family.name][name]
        head = ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r1;\n"
        text = f"{head}{form} %r1;\nret;\n}}"
        with pytest.raises(UnsupportedInstruction) as caught:
            load(text).kernel("k")
        assert caught.value.what.startswith(f"{form} is not supported")
