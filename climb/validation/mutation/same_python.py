"""Check whether two Python sources are one program: the interpreter would run the same instructions on the same
constants.

Such a mutant is not a mistake (trivial compiler equivalence: Papadakis, Jia, Harman and Le Traon, 2015), and is not
drawn.
"""

from __future__ import annotations

import functools
from types import CodeType
from typing import Any

from climb.validation.mutation.mutants import Mutant


def same_program(mutant: Mutant) -> bool:
    """Return whether a mutant of a Python file compiles to the code of the original, ignoring line numbers."""
    return _program(mutant.text) == program(mutant.mutated)


def program(text: str) -> tuple[Any, ...]:
    """Return the code of a module and of everything defined in it, without places in the text."""
    return _parts(compile(text, "module.py", "exec", dont_inherit=True))


_program = functools.lru_cache(maxsize=8)(program)  # a file's mutants come one after the other


def _parts(code: CodeType) -> tuple[Any, ...]:
    return (
        code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable,
        tuple(_constant(one) for one in code.co_consts),
    )  # fmt: skip


def _constant(value: Any) -> Any:
    """Return a constant in a form in which 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(value, CodeType):
        return _parts(value)
    if isinstance(value, tuple | frozenset):
        return type(value).__name__, tuple(sorted(map(repr, map(_constant, value))) if isinstance(value, frozenset)
                                           else map(_constant, value))  # fmt: skip
    return type(value).__name__, repr(value)
