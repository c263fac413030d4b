"""Standalone cells of a notebook: which cells they are, what they need of each other, and what their hash covers."""

from __future__ import annotations

import ast

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from climb.bench import standalone
from climb.bench.standalone import cell_sha256, chains

CELL = '''code = r"""
extern "C" __global__ void twice(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""
twice = cp.RawKernel(code, "twice")
print(f"{twice.name} {1.5:.1f}")
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2 * x[i];", "2*x[i];  // doubled"),
        ("{\n    int i", "{ /* an index */ int i"),
        ('twice = cp.RawKernel(code, "twice")', "twice = cp.RawKernel(\n    code,  # as above\n    'twice',\n)"),
        ('print(f"', '\n\nprint(  f"'),
    ],
)
def test_comments_and_layout_do_not_change_the_hash_of_a_cell(old, new):
    assert old in CELL
    assert cell_sha256(CELL.replace(old, new)) == cell_sha256(CELL)


@pytest.mark.parametrize(
    ("old", "new"),
    [("2 * x[i]", "3 * x[i]"), ("i < n", "i <= n"), ("1.5:.1f", "1.5:.2f"), ('"twice")', '"thrice")'), ("1.5", "2.5")],
)
def test_a_changed_token_changes_the_hash_of_a_cell(old, new):
    assert old in CELL
    assert cell_sha256(CELL.replace(old, new)) != cell_sha256(CELL)


def test_a_hash_is_the_same_on_every_version_of_python():
    """Recorded with one version, looked up with another: fields that only some versions have must not count."""
    assert cell_sha256("def f(x, *, n=1):\n    return f'{x!r:>{n}}' + 'a'[0:]\n") == (
        "01521a9ba7209a7c83f115844baa739bd90135a63ff1e20c0d3880237ee06a7c"
    )


def test_an_empty_text_at_the_end_of_a_format_does_not_count(monkeypatch):
    """Python 3.12 adds one, other versions do not."""
    source, parse = "f'{x:>{n}}'", ast.parse
    digest = cell_sha256(source)

    def parse_as_3_12_does(text):
        tree = parse(text)
        inner = [one.format_spec for one in ast.walk(tree) if isinstance(one, ast.FormattedValue) and one.format_spec]
        inner[0].values.append(ast.Constant(""))
        return tree

    with monkeypatch.context() as patched:
        patched.setattr(ast, "parse", parse_as_3_12_does)
        found = cell_sha256(source)
    assert found == digest


def test_a_cell_needs_those_cells_whose_names_it_uses():
    first, second, third, fourth = "a = 1", "b = 2", "c = a + 1", "print(c)"
    digests = [cell_sha256(source) for source in (first, second, third, fourth)]
    assert chains([first, second, third, fourth]) == [
        (digests[0],),
        (digests[1],),
        (digests[0], digests[2]),
        (digests[0], digests[2], digests[3]),
    ]


def test_a_cell_does_not_need_what_it_binds_itself():
    digests = [cell_sha256(source) for source in ("a = 1", "a = 2\nprint(a)", "a += 1")]
    assert chains(["a = 1", "a = 2\nprint(a)"])[1] == (digests[1],)
    assert chains(["a = 1", "a = a + 1"])[1][0] == digests[0]


def test_names_are_those_read_and_bound_in_any_scope():
    source = "def f(x):\n    return [x + k for k in range(n)]\nprint(f(cp))"
    assert standalone.used_names(source) - standalone.bound_names(source) == {"n", "cp"}
    assert {"f", "x", "k"} <= standalone.bound_names(source)


def test_tagged_cells_are_found_with_their_text(tmp_path):
    tagged = new_code_cell(
        "cp.cuda.get_elapsed_time(a, b)",
        metadata={"tags": ["standalone"]},
        outputs=[new_output("stream", name="stdout", text="right\n")],
    )
    nbformat.write(new_notebook(cells=[new_code_cell("1"), tagged]), tmp_path / "a-chapter.ipynb")
    nbformat.write(new_notebook(cells=[new_code_cell("1")]), tmp_path / "none.ipynb")
    (cell,) = standalone.standalone_cells(tmp_path / "a-chapter.ipynb")
    assert (cell.number, cell.printed, cell.timed) == (1, "right\n", True)
    assert cell.chain == (cell_sha256(cell.source),)
    assert standalone.chapters(tmp_path) == ("a-chapter",)
