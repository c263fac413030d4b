"""The changes of a rung: lines, words and names."""

from __future__ import annotations

import pytest

from climb.display.comparing import compare, header_length


def changes(old: str, new: str) -> tuple[list[str], dict[str, str]]:
    """The changed lines with their signs, the changed words in brackets, and the new names."""
    sides = {"del": old.split("\n"), "add": new.split("\n")}
    comparison = compare(sides["del"], sides["add"])
    shown = []
    for row in comparison.rows:
        if row.kind != "same":
            line = sides[row.kind][row.line]
            for start, end in reversed(row.marked):
                line = f"{line[:start]}<{line[start:end]}>{line[end:]}"
            shown.append(f"{'-+'[row.kind == 'add']} {line}")
    return shown, comparison.renamed


def kernel(name: str = "plain", parameters: str = "float* to") -> str:
    return f"__global__ void {name}({parameters})\n{{\n    int row = threadIdx.x;\n    to[row] = 0;\n}}"


def test_same_text_has_no_changes():
    assert changes(kernel(), kernel()) == ([], {})


def test_kernel_with_other_parameters_is_renamed_all_the_same():
    assert changes(kernel(), kernel("wide", "float* to, int n")) == (
        ["- __global__ void plain(float* to)", "+ __global__ void wide(float* to<, int n>)"], {"plain": "wide"}
    )  # fmt: skip


def test_kernel_with_launch_bounds_is_found():
    old = kernel().replace("void", "void __launch_bounds__(most(8))")
    assert changes(old, old.replace("plain", "other")) == ([], {"plain": "other"})


def test_variable_with_a_new_name_throughout_is_renamed():
    assert changes(kernel(), kernel().replace("row", "line")) == ([], {"row": "line"})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int row = threadIdx.x;", "int row = blockIdx.x;"),  # CUDA's names are no names of ours
        ("float4 row;", "float2 row;"),
        ("f(float row);", "constexpr float line = 1;"),  # a parameter that became a constant
        ("int row = 1;\nint line = 2;\nuse(row);", "int row = 1;\nint line = 2;\nuse(line);"),  # both stay
        ("int row = 1; row = fmaf(1, 2, 3);", "int row = 1; row = __fmaf_rn(1, 2, 3);"),
    ],
)
def test_change_of_meaning_is_no_rename(old, new):
    shown, renamed = changes(old, new)
    assert renamed == {} and shown


def test_statement_over_other_lines_is_the_same():
    assert changes("a(b,\n  c);\nd();", "a(b, c);\nd();") == ([], {})


def test_comment_is_compared_too():
    assert changes("a();  // one", "a();  // two") == (["- a();  // <one>", "+ a();  // <two>"], {})


def test_changed_words_are_marked_and_a_line_that_is_new_is_not():
    assert changes("sum += a[i] * b[i];", "sum += a[i] * b[i + 1];\nwait();") == (
        ["- sum += a[i] * b[i];", "+ sum += a[i] * b[i <+ 1>];", "+ wait();"], {}
    )  # fmt: skip


def test_only_the_comments_of_a_rung_are_its_header():
    assert header_length(["// Idea: a", "// b", "", "// c"]) == 2
    assert header_length(["// Exhibit. Source: there", "int a;"]) == header_length([]) == 0
    assert changes("// Idea: a\n// Requires: b\nint a;", "// Idea: c\nint a;") == ([], {})
