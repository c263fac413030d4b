"""Random programs of nested control flow, in CUDA and in Python; all values are unsigned 32-bit integers."""

from __future__ import annotations

import random

VARIABLES = ("a", "b", "c")
#: Number of words that a program reads.
WORDS = 64


class Writer:
    """Write one program, statement by statement, into `cuda` and `python`."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cuda: list[str] = []
        self.python: list[str] = []
        self.loops = 0

    def emit(self, depth: int, cuda: str, python: str) -> None:
        """Add a line to both."""
        self.cuda.append("    " * depth + cuda)
        self.python.append("    " * depth + python)

    def expression(self) -> tuple[str, str]:
        """Return a random expression: (CUDA, Python)."""
        rng = self.rng
        left, right = rng.choice((*VARIABLES, "t")), rng.choice((*VARIABLES, "t", str(rng.randrange(1, 50))))
        operator = rng.choice(("+", "-", "*", "^", "&", "|", "%", "/", ">>", "load"))
        if operator == "load":
            return f"in[({left} + {right}) % 64u]", f"data[(({left} + {right}) & M) % 64]"
        if operator in "%/":
            return (
                f"({left} {operator} ({right} % 13u + 1u))",
                f"({left} {'%' if operator == '%' else '//'} ({right} % 13 + 1))",
            )
        if operator == ">>":
            return f"({left} >> ({right} & 15u))", f"({left} >> ({right} & 15))"
        return f"({left} {operator} {right})", f"(({left} {operator} {right}) & M)"

    def condition(self) -> tuple[str, str]:
        """Return a random condition: (CUDA, Python)."""
        (a, pa), (b, pb) = self.expression(), self.expression()
        sign = self.rng.choice(("<", ">=", "==", "!="))
        low = self.rng.randrange(2, 9)
        one = (f"({a} % {low}u {sign} {b} % {low}u)", f"({pa} % {low} {sign} {pb} % {low})")
        if self.rng.random() < 0.3:
            other = self.condition()
            join = self.rng.choice((("&&", "and"), ("||", "or")))
            return f"({one[0]} {join[0]} {other[0]})", f"({one[1]} {join[1]} {other[1]})"
        return one

    def block(self, depth: int, inside: bool) -> None:
        """Write one to three statements; `inside` says whether they are in a loop."""
        for _ in range(self.rng.randrange(1, 4)):
            self.statement(depth, inside)

    def statement(self, depth: int, inside: bool) -> None:
        """Write an assignment, a branch, a loop, a jump out of one, or an early return."""
        rng = self.rng
        kind = rng.random()
        if depth > 4 or kind < 0.4:
            target, (code, python) = rng.choice(VARIABLES), self.expression()
            self.emit(depth, f"{target} = {code};", f"{target} = {python}")
        elif kind < 0.65:
            code, python = self.condition()
            self.emit(depth, f"if ({code}) {{", f"if {python}:")
            self.block(depth + 1, inside)
            if rng.random() < 0.6:
                self.emit(depth, "} else {", "else:")
                self.block(depth + 1, inside)
            self.cuda.append("    " * depth + "}")
        elif kind < 0.85:
            self.loops += 1
            i, (code, python), bound = f"i{self.loops}", self.expression(), rng.randrange(2, 7)
            self.emit(
                depth,
                f"#pragma unroll 1\nfor (unsigned {i} = 0, n{i} = {code} % {bound}u; {i} < n{i}; ++{i}) {{",
                f"for {i} in range({python} % {bound}):",
            )
            self.emit(depth + 1, f"a += {i};", f"a = (a + {i}) & M")
            self.block(depth + 1, True)
            self.cuda.append("    " * depth + "}")
        elif kind < 0.93 and inside:
            code, python = self.condition()
            word = rng.choice(("break", "continue"))
            self.emit(depth, f"if ({code}) {word};", f"if {python}: {word}")
        elif kind < 0.95:
            code, python = self.condition()
            self.emit(depth, f"if ({code}) {{ out[t] = b; return; }}", f"if {python}: return b")
        else:
            self.emit(depth, "b = b * 3u + c;", "b = (b * 3 + c) & M")


def program(seed: int) -> tuple[str, str]:
    """Return (CUDA kernel `k(in, out)`, Python function `run(data, t)`): each gives word t of the output from WORDS
    words."""
    writer = Writer(seed)
    for _ in range(5):
        writer.statement(1, False)
    start = 'extern "C" __global__ void k(const unsigned* in, unsigned* out) {\n'
    start += "    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, a = in[t % 64u], b = t * 7u, c = 1u;\n"
    cuda = start + "\n".join(writer.cuda) + "\n    out[t] = a ^ b * 31u ^ c * 17u;\n}\n"
    python = "def run(data, t, M=0xFFFFFFFF):\n    a, b, c = data[t % 64], (t * 7) & M, 1\n"
    python += "\n".join(writer.python) + "\n    return (a ^ b * 31 ^ c * 17) & M\n"
    return cuda, python
