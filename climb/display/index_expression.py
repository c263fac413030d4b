"""Index expressions as a reader types them: C's integer expressions over the lanes of one warp.

Values are 32-bit ``int`` or ``unsigned``, with C's promotions: ``threadIdx.x`` is unsigned, so ``threadIdx.x - 1``
wraps in lane 0. Behaviour that C leaves undefined is an error here: an int that overflows, a division by zero, a shift
by 32. ``book/_static/play/expression.js`` is the same language in JavaScript; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WARP = 32
LONGEST = 200
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)"
    r"|(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>()?:,])|(?P<end>$)|(?P<other>.))",
    re.ASCII | re.DOTALL,
)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uU]?)", re.ASCII)
#: Binary operators, in order of increasing precedence.
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
           ("*", "/", "%"))  # fmt: skip
_INT_RESULT = {"||", "&&", "==", "!=", "<", "<=", ">", ">=", "!"}
#: The variables, and whether each is unsigned.
VARIABLES = {"lane": False, "threadIdx.x": True, "threadIdx.y": True, "blockDim.x": True, "warpSize": False}
FUNCTIONS = ("min", "max")


class ExpressionError(ValueError):
    """A text that is not an expression, or whose value C leaves undefined. ``position`` counts characters from 0."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(f"{what}, at character {position + 1}")
        self.position = position


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        return f"'{self.text}'" if self.text else "the end"


@dataclass(frozen=True)
class _Node:
    operator: str
    parts: tuple[_Node, ...]
    position: int
    unsigned: bool
    value: int | str = 0


def lanes(text: str, block: int = WARP, active: Sequence[bool] = (True,) * WARP) -> list[int]:
    """Evaluate an expression in each of 32 lanes: the first warp of a block that is ``block`` threads wide.

    Lanes that are not ``active`` do not evaluate it and have 0. Raises ExpressionError, whose message says which
    character is at fault.
    """
    tree = _Parser(text).parse()
    return [_evaluate(tree, _variables(lane, block)) if active[lane] else 0 for lane in range(WARP)]


def _variables(lane: int, block: int) -> dict[str, int]:
    return {
        "lane": lane,
        "threadIdx.x": lane % block,
        "threadIdx.y": lane // block,
        "blockDim.x": block,
        "warpSize": WARP,
    }


class _Parser:
    """A parser by recursive descent, one call per level of precedence."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ExpressionError(f"the expression is longer than {LONGEST} characters", LONGEST)
        self.tokens = list(_tokens(text))
        self.at = 0

    def parse(self) -> _Node:
        if self.token.kind == "end":
            raise ExpressionError("the expression is empty", 0)
        tree = self._choice()
        if self.token.kind != "end":
            raise ExpressionError(f"expected an operator, found {self.token}", self.token.position)
        return tree

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def _next(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, text: str, why: str) -> None:
        if self.token.text != text:
            raise ExpressionError(f"expected '{text}' {why}, found {self.token}", self.token.position)
        self.at += 1

    def _choice(self) -> _Node:
        condition = self._binary(0)
        if self.token.text != "?":
            return condition
        mark = self._next()
        yes = self._choice()
        self._expect(":", f"for the '?' at character {mark.position + 1}")
        no = self._choice()
        return _Node("?", (condition, yes, no), mark.position, yes.unsigned or no.unsigned)

    def _binary(self, level: int) -> _Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.token.text in _LEVELS[level]:
            mark = self._next()
            right = self._binary(level + 1)
            unsigned = left.unsigned if mark.text in ("<<", ">>") else left.unsigned or right.unsigned
            left = _Node(mark.text, (left, right), mark.position, unsigned and mark.text not in _INT_RESULT)
        return left

    def _unary(self) -> _Node:
        mark = self._next()
        if mark.text and mark.text in "-+~!":
            part = self._unary()
            return _Node("unary " + mark.text, (part,), mark.position, part.unsigned and mark.text != "!")
        if mark.text == "(":
            inside = self._choice()
            self._expect(")", f"for the '(' at character {mark.position + 1}")
            return inside
        if mark.kind == "number":
            return _number(mark)
        if mark.text in VARIABLES:
            return _Node("name", (), mark.position, VARIABLES[mark.text], mark.text)
        if mark.text in FUNCTIONS:
            self._expect("(", f"after {mark.text}")
            first = self._choice()
            self._expect(",", f"between the two values of {mark.text}")
            second = self._choice()
            self._expect(")", f"after the two values of {mark.text}")
            return _Node(mark.text, (first, second), mark.position, first.unsigned or second.unsigned)
        if mark.kind == "name":
            known = ", ".join([*VARIABLES, *FUNCTIONS])
            raise ExpressionError(f"there is no '{mark.text}'; there are {known}", mark.position)
        raise ExpressionError(f"expected a value, found {mark}", mark.position)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, position)
        kind = str(match.lastgroup) if match else "end"
        token = _Token(kind, match[kind] if match else "", match.start(kind) if match else len(text))
        if kind == "other":
            raise ExpressionError(f"'{token.text}' has no place in an index", token.position)
        found.append(token)
        position = token.position + len(token.text)
    return found


def _number(token: _Token) -> _Node:
    match = _NUMBER.fullmatch(token.text)
    if not match:
        raise ExpressionError(f"'{token.text}' is not a whole number", token.position)
    digits, suffix = match.groups()
    is_hex = digits[:2] in ("0x", "0X")
    if not is_hex and len(digits) > 1 and digits[0] == "0":
        raise ExpressionError(f"'{token.text}' is octal in C; leave out the leading zero", token.position)
    value = int(digits, 16 if is_hex else 10)
    unsigned = bool(suffix) or (is_hex and value >= 1 << 31)
    if value >= 1 << (32 if unsigned else 31):
        raise ExpressionError(f"'{token.text}' does not fit into 32 bits", token.position)
    return _Node("number", (), token.position, unsigned, value)


def _evaluate(node: _Node, variables: dict[str, int]) -> int:
    """Return the node's value in one lane, within the range of its type."""
    operator, parts = node.operator, node.parts
    if operator == "number":
        return int(node.value)
    if operator == "name":
        return variables[str(node.value)]
    first = _evaluate(parts[0], variables)
    if operator == "?":
        return _as(node.unsigned, _evaluate(parts[1 if first else 2], variables))
    if operator in ("&&", "||"):
        return int(bool(first)) if bool(first) == (operator == "||") else int(_evaluate(parts[1], variables) != 0)
    if len(parts) == 1:
        return _fit(node, _UNARY[operator](first), variables)
    second = _evaluate(parts[1], variables)
    if operator in ("<<", ">>"):
        if not 0 <= second < 32:
            raise _undefined(node, variables, f"shifts by {second}, and C allows 0 to 31")
        return _fit(node, first << second if operator == "<<" else first >> second, variables)
    unsigned = parts[0].unsigned or parts[1].unsigned
    first, second = _as(unsigned, first), _as(unsigned, second)
    if operator in ("/", "%"):
        if second == 0:
            raise _undefined(node, variables, "divides by zero")
        quotient = abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
        _fit(node, quotient, variables)
        return quotient if operator == "/" else first - quotient * second
    return _fit(node, _BINARY[operator](first, second), variables)


_UNARY: dict[str, Callable[[int], int]] = {
    "unary -": lambda a: -a, "unary +": lambda a: a, "unary ~": lambda a: ~a, "unary !": lambda a: int(a == 0),
}  # fmt: skip
_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b), "min": min, "max": max,
}  # fmt: skip


def _as(unsigned: bool, value: int) -> int:
    return value % (1 << 32) if unsigned else value


def _fit(node: _Node, value: int, variables: dict[str, int]) -> int:
    """Return the value in the node's type: an unsigned one wraps, an int that does not fit is undefined."""
    if not node.unsigned and not -(1 << 31) <= value < 1 << 31:
        raise _undefined(node, variables, "overflows a 32-bit int")
    return _as(node.unsigned, value)


def _undefined(node: _Node, variables: dict[str, int], what: str) -> ExpressionError:
    return ExpressionError(f"lane {variables['lane']} {what}", node.position)
