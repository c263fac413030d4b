"""CUDA C++ in the strings of Python cells is highlighted as C++, and all other Python as before."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from ipython_pygments_lexers import IPython3Lexer
from pygments.token import Comment, Keyword, Name, String

spec = importlib.util.spec_from_file_location(
    "cuda_strings", Path(__file__).resolve().parents[2] / "book" / "_extensions" / "cuda_strings.py"
)
cuda_strings = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cuda_strings)


def tokens_of(code: str) -> list[tuple[object, str]]:
    """The tokens of a cell. Their text must be the cell's."""
    tokens = list(cuda_strings.PythonWithCuda().get_tokens(code))
    assert "".join(text for _, text in tokens).rstrip("\n") == code.rstrip("\n")
    return tokens


KERNEL = '''code = r"""
extern "C" __global__ void copy(float* to)
{
    to[threadIdx.x] = 'a';  // one "word"
}
"""
k = cp.RawKernel(code, "copy")'''


def test_kernel_in_a_string_is_cpp():
    tokens = tokens_of(KERNEL)
    assert (Keyword.Reserved, "__global__") in tokens and (Keyword.Type, "float") in tokens
    assert any(kind in Comment and text.startswith('// one "word"') for kind, text in tokens)
    assert (String.Affix, "r") in tokens and [text for _, text in tokens].count('"""') == 2
    assert (Name, "k") in tokens and (String.Double, "copy") in tokens, "what follows is Python again"


def test_one_line_of_cuda_is_cpp_and_its_escapes_stay():
    tokens = tokens_of("broken = code.replace('    __syncthreads();\\n', '', 1)")
    assert (Name.Function, "__syncthreads") in tokens
    assert (String.Escape, "\\n") in tokens


def test_fields_of_an_f_string_stay_python():
    tokens = tokens_of('f"__shared__ float tile[{side + 1}];"')
    assert (Keyword.Type, "__shared__") in tokens and (Name, "side") in tokens


@pytest.mark.parametrize(
    "code",
    [
        'print("the threads of a block, its float and its int")',
        '"""A docstring."""\nx = 1',
        "x = 'open",
        "for i in range(3):\n    print(f'{i:>{width}} {x!r}')",
    ],
)
def test_other_python_is_as_before(code):
    assert tokens_of(code) == list(IPython3Lexer(stripnl=False).get_tokens(code))
