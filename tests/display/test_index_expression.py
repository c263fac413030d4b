"""Index expressions: Python, JavaScript and compiled kernels agree, and errors name their character."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tools.javascript import Scripts

from climb import count_kernel
from climb.display.index_expression import ExpressionError, lanes

BINARY = ["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||"]
LEAVES = [
    "lane",
    "threadIdx.x",
    "threadIdx.y",
    "blockDim.x",
    "warpSize",
    "0",
    "1",
    "2",
    "3u",
    "7",
    "32",
    "0x1f",
    "0xffffffff",
]


@pytest.fixture(scope="module")
def scripts() -> Scripts:
    return Scripts()


def expression(draw: random.Random, depth: int) -> str:
    """A random expression; its spaces and parentheses are random too, so that precedence matters."""
    kind = draw.random()
    if depth == 0 or kind < 0.15:
        return draw.choice(LEAVES)
    part = [expression(draw, depth - 1) for _ in range(3)]
    if kind < 0.7:
        joined = f"{part[0]} {draw.choice(BINARY)} {part[1]}"
    elif kind < 0.8:
        joined = f"{draw.choice('-+~!')} {part[0]}"
    elif kind < 0.9:
        joined = f"{draw.choice(['min', 'max'])}({part[0]}, {part[1]})"
    else:
        joined = f"{part[0]} ? {part[1]} : {part[2]}"
    return f"({joined})" if draw.random() < 0.5 else joined


def outcome(text: str, block: int) -> list[int] | dict[str, str]:
    try:
        return lanes(text, block)
    except ExpressionError as error:
        return {"error": str(error)}


def test_javascript_agrees_with_python_on_random_expressions(scripts: Scripts) -> None:
    draw = random.Random(13)
    inputs = [(expression(draw, draw.randint(1, 4)), draw.choice((32, 16, 8, 4))) for _ in range(1000)]
    found = scripts.call("RLPlay.lanes", [list(one) for one in inputs])
    expected = [outcome(*one) for one in inputs]
    assert found == expected
    assert 300 < sum(isinstance(one, list) for one in expected) < 1000, "values and errors must both occur"


def test_javascript_gives_the_same_message_for_every_broken_text(scripts: Scripts) -> None:
    draw = random.Random(14)
    texts = ["", "  ", "(", "1 +", "lane lane", "foo", "lane.x", "min(1)", "min 1", "1.5", "08", "99999999999", "1u2",
             "a$b", "1 ? 2", "=", "lane = 3", "x" * 201, "toString", "0x", "1 << 40", "1 / 0", "\t lane\n*  2 ", "é",
             "((lane)"]  # fmt: skip
    for _ in range(500):
        text = list(expression(draw, 3))
        for _ in range(draw.randint(1, 3)):
            text[draw.randrange(len(text))] = draw.choice("()+*?:,.$ x19u<&")
        texts.append("".join(text))
    assert scripts.call("RLPlay.lanes", [[text] for text in texts]) == [outcome(text, 32) for text in texts]


@pytest.mark.parametrize(
    ("text", "expected", "position"),
    [
        ("", "the expression is empty, at character 1", 0),
        ("lane * ", "expected a value, found the end, at character 8", 7),
        ("lane * (2 + 3", "expected ')' for the '(' at character 8, found the end, at character 14", 13),
        ("2 lane", "expected an operator, found 'lane', at character 3", 2),
        ("row * 2", "there is no 'row'; there are lane, threadIdx.x, threadIdx.y, blockDim.x, warpSize, min, max, "
         "at character 1", 0),
        ("lane @ 2", "'@' has no place in an index, at character 6", 5),
        ("010", "'010' is octal in C; leave out the leading zero, at character 1", 0),
        ("7 / (lane - 3)", "lane 3 divides by zero, at character 3", 2),
        ("lane << 30", "lane 2 overflows a 32-bit int, at character 6", 5),
        ("1 >> lane + 1", "lane 31 shifts by 32, and C allows 0 to 31, at character 3", 2),
    ],
)  # fmt: skip
def test_error_names_the_fault_and_its_character(text: str, expected: str, position: int) -> None:
    with pytest.raises(ExpressionError) as error:
        lanes(text)
    assert (str(error.value), error.value.position) == (expected, position)


def test_inactive_lanes_do_not_evaluate_the_expression() -> None:
    active = [lane > 0 for lane in range(32)]
    assert lanes("32 / lane", active=active)[:4] == [0, 32, 16, 10]


def test_values_equal_those_of_a_compiled_kernel() -> None:
    """One kernel evaluates 60 expressions: those that C defines, with all operators among them."""
    draw = random.Random(15)
    defined: list[str] = [
        "threadIdx.x - 1",
        "-lane / 3",
        "-lane % 3",
        "lane ^ lane >> 1",
        "lane < 4 ? -1 : 1u",
        "~lane",
    ]
    while len(defined) < 60:
        text = expression(draw, 3)
        if isinstance(outcome(text, 8), list):
            defined.append(text)
    stores = "\n".join(f"    value[{i} * 32 + lane] = (long long)({text});" for i, text in enumerate(defined))
    source = f"""
__global__ void probe(long long* value) {{
    const int lane = threadIdx.y * blockDim.x + threadIdx.x;
{stores}
}}
"""
    value = np.zeros(len(defined) * 32, np.int64)
    count_kernel(source, "probe", (1,), (8, 4), [value])
    for text, row in zip(defined, value.reshape(-1, 32).tolist(), strict=True):
        assert row == lanes(text, 8), text
    assert all(any(f" {operator} " in text for text in defined) for operator in BINARY)
