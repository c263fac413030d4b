"""The interface that a rule may call to emit an instruction's code; `translation.emitter.Emitter` implements it."""

from __future__ import annotations

from typing import NoReturn, Protocol

import numpy as np

from .. import ptx


class Emitter(Protocol):
    """Writes the Python function of one basic block. Values are named by expressions: strings of Python code."""

    def line(self, code: str) -> None:
        """Append a statement."""

    def fresh(self, code: str, hint: str = "t") -> str:
        """Bind an expression to a new variable and return its name."""

    def constant(self, value: np.ndarray) -> str:
        """Return the name of a constant, a (1, 1) array."""

    def kind(self, name: str) -> str:
        """Return the PTX type in which a register is kept between blocks."""

    def kind_of(self, operand: ptx.Operand, kind: str) -> str:
        """Return the current type of an operand if it is as wide as `kind`, else the unsigned type of that width."""

    def resolve(self, kind: str, target: ptx.Operand) -> str:
        """Return the type that an open kind (`i32`, `b32`) stands for in this destination."""

    def read(self, operand: ptx.Operand, kind: str) -> str:
        """Return an expression for an operand as a value of type `kind`; a wider register gives its low part."""

    def sources(self, instruction: ptx.Instruction) -> list[str]:
        """Return expressions for the source operands, in the types that the rule states."""

    def write(self, target: ptx.Operand, kind: str, code: str) -> None:
        """Bind a register to the value of an expression of type `kind`."""

    def write_extended(self, target: ptx.Operand, kind: str, code: str) -> None:
        """Like `write`, for a register that may be wider: extend by zeros, or by the sign if `kind` is signed."""

    def alias(self, target: ptx.Operand, source: ptx.Operand, kind: str) -> None:
        """Let a register stand for another value of the same width."""

    def flushed(self, value: str) -> str:
        """Return an expression for a float32 value with subnormals flushed to zero."""

    def mark_flushed(self, target: ptx.Operand) -> None:
        """State that the value just written to a register cannot be subnormal."""

    def address(self, operand: ptx.Operand, space: str) -> str:
        """Return the base of an address as int64; the offset is part of the site."""

    def parameter_offset(self, instruction: ptx.Instruction, operand: ptx.Operand) -> int:
        """Return the byte offset of an address in parameter space."""

    def site(self, instruction: ptx.Instruction, space: str, action: str, element: np.dtype, count: int) -> str:
        """Register a memory access of `count` elements and return the name of its Site in generated code."""

    def part(self, instruction: ptx.Instruction, space: str, element: np.dtype, count: int, start: int) -> str:
        """Like `site`, for the elements from byte `start` on of a load that another site counts."""

    def uncounted(self, site: str) -> None:
        """Exclude the accesses of a site from the counters."""

    def combine(self, site: str) -> None:
        """Mark an atomic that adds one as combinable: its result is not read."""

    def is_read(self, target: ptx.Operand) -> bool:
        """Return whether any instruction reads a register of a destination."""

    def is_in_address(self, target: ptx.Operand) -> bool:
        """Return whether a memory access takes its address from a register, or from sums and products of it."""

    def place(self, instruction: ptx.Instruction) -> str:
        """Return the name in generated code of a site that tells errors where the instruction is."""

    def product_number(self, instruction: ptx.Instruction) -> int:
        """Return the number of an asynchronous matrix product among those of the kernel."""

    def refuse(self, why: str) -> NoReturn:
        """Raise UnsupportedInstruction for the instruction that is being translated."""
