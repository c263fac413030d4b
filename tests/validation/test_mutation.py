"""Mutation testing: operators make the mistakes that they name, seeds reproduce, killed and survived are told apart."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from climb.bench.registry import load_ladder
from climb.cli import mutate
from climb.toolchain import compile_cuda
from climb.validation.mutation import Mutant, choosing, compiled, cuda, python, running, same_python
from climb.validation.mutation.noticing import AT_ONCE, Noticing, Stage, enclosing

ROOT = Path(__file__).resolve().parents[2]

KERNEL = """// Idea: a < b in a comment.
#include "other.cuh"
constexpr int kThreads = 256;
template <int kWidth>
__global__ void __launch_bounds__(kThreads) scale(const float* x, float* y, size_t n)
{
    __shared__ float tile[kThreads + 1];
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        tile[i] = x[i] * 2;
        __syncthreads();  // a barrier
        __threadfence();
        if (i > 0 && n != 3) y[i] += tile[i + 1];
    }
}
"""


def _lines(text: str, operator: str) -> set[tuple[str, str]]:
    return {
        (mutant.original_line, mutant.mutated_line)
        for mutant in cuda.mutants("k.cu", text)
        if mutant.operator == operator
    }


@pytest.mark.parametrize(
    ("operator", "old", "new"),
    [
        ("bounds", "i < n;", "i <= n;"),
        ("bounds", "i > 0", "i >= 0"),
        ("guards", "&&", "||"),
        ("guards", "n != 3", "n == 3"),
        ("strides", "i += blockDim.x)", "i += 2 * blockDim.x)"),
        ("barriers", "__syncthreads();", ";"),
        ("fences", "__threadfence();", ";"),
        ("indices", "tile[i + 1]", "tile[i + 1 + 1]"),
        ("indices", "tile[i + 1]", "tile[i - 1]"),
        ("indices", "x[i] * 2", "x[i] + 2"),
        ("indices", "= threadIdx.x", "= threadIdx.y"),
        ("constants", "x[i] * 2", "x[i] * (2 + 1)"),
        ("accumulates", "y[i] += tile", "y[i] = tile"),
        ("accumulates", "y[i] += tile", "y[i] -= tile"),
    ],
)
def test_cuda_operator_makes_the_mistake_that_it_names(operator: str, old: str, new: str) -> None:
    (line,) = [line.strip() for line in KERNEL.splitlines() if old in line]
    assert (line, line.replace(old, new)) in _lines(KERNEL, operator)


def test_comments_includes_constants_and_declarations_are_left_alone() -> None:
    for mutant in cuda.mutants("k.cu", KERNEL):
        left = ("//", "#", "constexpr", "template", "__global__", "__shared__")
        assert not mutant.original_line.startswith(left), str(mutant)
        assert mutant.mutated_line.split("//")[1:] == mutant.original_line.split("//")[1:]
        assert mutant.mutated != KERNEL and mutant.mutated.count("\n") == KERNEL.count("\n")


MODULE = '''"""A docstring with 1 < 2."""

def kept(a: int = 3) -> int:
    """Another, 4."""
    if a < 2 and not a == 1:
        raise ValueError(f"{a + 1} is below 2")
    total = a * 5
    total += 7
    print(total)
    for each in range(a):
        continue
    return total
'''


@pytest.mark.parametrize(
    ("operator", "old", "new"),
    [
        ("bounds", "a < 2", "a <= 2"),
        ("bounds", "a == 1", "a != 1"),
        ("guards", "2 and not", "2 or not"),
        ("guards", "not a == 1", "(a == 1)"),
        ("guards", "a < 2 and not a == 1:", "not (a < 2 and not a == 1):"),
        ("guards", "continue", "break"),
        ("indices", "a * 5", "a + 5"),
        ("constants", "a * 5", "a * 6"),
        ("constants", "= 3", "= 4"),
        ("accumulates", "+= 7", "= 7"),
        ("calls", "print(total)", "pass"),
    ],
)
def test_python_operator_makes_the_mistake_that_it_names(operator: str, old: str, new: str) -> None:
    made = {mutant.mutated for mutant in python.mutants("m.py", MODULE) if mutant.operator == operator}
    assert MODULE.count(old) == 1
    assert MODULE.replace(old, new) in made


def test_docstrings_and_messages_are_left_alone() -> None:
    for mutant in python.mutants("m.py", MODULE):
        ast.parse(mutant.mutated)
        assert '"""' not in mutant.original_line and "raise" not in mutant.original_line, str(mutant)


def test_guards_against_mistakes_and_what_runs_by_hand_are_left_alone() -> None:
    text = 'list(zip(a, b, strict=True))\nif __name__ == "__main__":\n    main(1)\nif TYPE_CHECKING:\n    import x\n'
    assert {mutant.mutated_line for mutant in python.mutants("m.py", text)} == {"pass"}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("class A(Protocol):\n    def f(self, a=1): ...\n", set()),
        ("class A(typing.Protocol[T]):\n    def f(self, a=1): ...\n", set()),
        ("class A(B):\n    def f(self, a=1): ...\n", {"def f(self, a=2): ..."}),
        ("def __repr__(self):\n    return str(1)\n", set()),
        ("a = f(timeout=3, maxsize=4, depth=5)\n", {"a = f(timeout=3, maxsize=4, depth=6)"}),
        ("print(a, file=sys.stderr, flush=True)\n", {"pass"}),
        ("print(a, flush=True)\n", {"pass", "print(a, flush=False)"}),
        ("a = b.reshape(-1, 2)\n", {"a = b.reshape(-1, 3)"}),
        ("a = b.sum(-1)\n", {"a = b.sum(-2)"}),
        ('a = b.rsplit("/", 1)[-1]\n', {'a = b.rsplit("/", 1)[-2]'}),
        ('a = b.split("/", 1)[0]\n', {'a = b.split("/", 1)[1]'}),
        ('a = b.split("/", 1)[1]\n', {'a = b.split("/", 2)[1]', 'a = b.split("/", 1)[2]'}),
    ],
)
def test_what_cannot_change_a_result_by_its_kind_is_left_alone(text: str, made: set[str]) -> None:
    assert {mutant.mutated_line for mutant in python.mutants("m.py", text)} == made


@pytest.mark.parametrize(
    ("text", "mutated", "same"),
    [
        ("def f():\n    while True:\n        g()\n", "def f():\n    while 1:\n        g()\n", True),
        ("a = 2 * 3\n", "\na = 6\n", True),
        ("def f(x: int): return x\n", "def f(x: int): return +x\n", False),
        ("a = 1\n", "a = True\n", False),
        ("a = (0.0,)\n", "a = (-0.0,)\n", False),
        ("def f(*, a): return a\n", "def f(a): return a\n", False),
        ("def f():\n    return lambda: 1\n", "def f():\n    return lambda: 2\n", False),
    ],
)
def test_a_python_mutant_that_is_the_same_program_is_told_from_others(text: str, mutated: str, same: bool) -> None:
    assert same_python.same_program(Mutant("m.py", "any", 0, len(text), mutated, text)) is same


def test_a_python_mutant_that_is_the_same_program_is_not_drawn(tmp_path: Path) -> None:
    """`a + 0 * 1` is not folded, but of `0 * 1` and `0 + 1` only the second is another number than 0."""
    (tmp_path / "climb" / "bench").mkdir(parents=True)
    (tmp_path / "climb" / "bench" / "m.py").write_text("a = 0 << 1\n")
    made = {mutant.mutated_line for mutant in choosing.mutants_of(tmp_path, "climb/bench/m.py")}
    drawn = {mutant.mutated_line for mutant in choosing.drawn_of_areas(tmp_path, ["bench"], 0)}
    assert made == {"a = 0 >> 1", "a = 1 << 1", "a = 0 << 2"} and drawn == {"a = 1 << 1"}


def test_positions_are_right_behind_letters_of_several_bytes() -> None:
    text = 'x = "µµ" if 1 < 2 else 0\n'
    assert 'x = "µµ" if 1 <= 2 else 0\n' in {mutant.mutated for mutant in python.mutants("m.py", text)}


def test_a_seed_draws_the_same_mutants_and_another_seed_others() -> None:
    files = choosing.files_of(ROOT, "rungs")[:12]
    first, again, other = ([m.key for m in choosing.drawn(ROOT, files, seed)][:24] for seed in (1, 1, 2))
    assert first == again != other


def test_one_mutant_of_each_file_is_drawn_before_a_second() -> None:
    files = choosing.files_of(ROOT, "rungs")[:12]
    drawn = [mutant.file for mutant in choosing.drawn(ROOT, files, 0)]
    there = set(drawn)  # a source that only includes others has nothing to mutate
    assert len(there) > 6 and set(drawn[: len(there)]) == there


def test_areas_hold_rungs_and_modules_but_no_exhibits() -> None:
    assert all(choosing.files_of(ROOT, area) for area in choosing.AREAS)
    assert not any("exhibits" in file or "exercises" in file for file in choosing.files_of(ROOT, "rungs"))


def test_a_header_is_noticed_by_the_rungs_that_include_it() -> None:
    noticing = Noticing(ROOT)
    for header in (file for file in choosing.files_of(ROOT, "rungs") if file.endswith(".cuh")):
        assert noticing.rungs_of(header), header


def test_the_rungs_of_a_header_are_checked_a_few_at_a_time(tmp_path: Path) -> None:
    """All checks of a hundred rungs take longer than a run may."""
    names = [f"rung{number}" for number in range(2 * AT_ONCE + 1)]
    for chapter, rungs in (("a", names[:2]), ("b", names[2:])):
        (ladder := tmp_path / "kernels" / chapter / "l").mkdir(parents=True)
        (tests := tmp_path / "tests" / "kernels" / chapter).mkdir(parents=True)
        (tests / "test_rungs.py").write_text("")
        for name in rungs:
            (ladder / f"01_{name}.cu").write_text('#include "../../common.cuh"\n')
    text = "int f() { return 1; }\n"
    (tmp_path / "kernels" / "common.cuh").write_text(text)
    mutant = next(cuda.mutants("kernels/common.cuh", text))
    stages = [stage.arguments for stage in Noticing(tmp_path).stages(mutant)]
    both, only_b = ["tests/kernels/a/test_rungs.py", "tests/kernels/b/test_rungs.py"], ["tests/kernels/b/test_rungs.py"]
    assert [list(each[:-2]) for each in stages[:3]] == [both, only_b, only_b]
    for part in (stages[:3], stages[3:6]):
        asked = [re.findall(r"l-(rung\d+)", arguments[-1]) for arguments in part]
        assert [one for each in asked for one in each] == names and max(map(len, asked)) == AT_ONCE
    assert [each[0] for each in stages[6:]] == ["tests/kernels/a", "tests/kernels/b"]


def test_the_id_of_a_test_may_have_what_separates_it_from_the_message() -> None:
    """Cut short at its dash, the id would be of no test, and the run would begin again for ever."""
    tests = ("tests/test_m.py::test_a", "tests/test_m.py::test_a[x[t - d]-x[t]]")
    for test in tests:
        assert running._first_failed(f"short summary\nFAILED {test} - assert 1 - 2\n1 failed", tests) == test
        assert running._first_failed(f"ERROR {test}\n1 error", tests) == test
    assert running._first_failed("FAILED tests/test_n.py::test_b - assert 1 - 2", tests) == "tests/test_n.py::test_b"
    assert running._first_failed("1 passed", tests) == ""


def test_enclosing_function_is_the_outermost_one() -> None:
    text = "a = 1\nclass C:\n    b = 2\n    def f(self):\n        def g():\n            return 3\n        return g\n"
    found = {mutant.line: enclosing(mutant) for mutant in python.mutants("m.py", text)}
    assert found == {1: None, 3: None, 6: "C.f"}


def test_a_module_is_noticed_by_the_tests_that_call_the_function_quickest_first() -> None:
    text = "def f():\n    return 1 + 1\n"
    mutant = next(python.mutants("climb/emulator/m.py", text))
    calls = {
        "slow": {"seconds": 2.0, "functions": ["climb/emulator/m.py::f"]},
        "other": {"seconds": 0.1, "functions": ["climb/emulator/m.py::g"]},
        "quick": {"seconds": 0.5, "functions": ["climb/emulator/m.py::f"]},
    }
    assert Noticing(ROOT, calls).stages(mutant) == [Stage((), ("quick", "slow"))]
    assert Noticing(ROOT, {}).stages(mutant) == []


def test_a_function_that_no_test_calls_here_is_noticed_by_the_tests_of_its_package() -> None:
    mutant = next(python.mutants("climb/emulator/m.py", "def f():\n    return 1 + 1\n"))
    functions = {"near": "climb/emulator/n.py::g", "far": "climb/bench/n.py::g"}
    calls = {test: {"seconds": 1.0, "functions": [function]} for test, function in functions.items()}
    assert Noticing(ROOT, calls).stages(mutant) == [Stage((), ("near",))]


def test_a_constant_of_a_module_is_noticed_by_tests_of_every_file_before_any_file_has_two() -> None:
    mutant = next(python.mutants("climb/emulator/m.py", "a = 1\n"))
    seconds = {"t/a.py::1": 1.0, "t/a.py::2": 2.0, "t/a.py::3": 15.0, "t/b.py::1": 90.0, "t/b.py::2": 110.0}
    calls = {test: {"seconds": s, "functions": ["climb/emulator/m.py::f"]} for test, s in seconds.items()}
    (stage,) = Noticing(ROOT, calls).stages(mutant)
    assert stage.tests == ("t/a.py::1", "t/b.py::1", "t/a.py::2")


def test_a_constant_is_noticed_by_tests_of_a_file_that_imports_the_module_and_calls_no_function(tmp_path: Path) -> None:
    """A test of the defaults of a dataclass is such a test."""
    mutant = next(python.mutants("climb/emulator/sums.py", "a = 1\n"))
    for name, text in (("a", "from climb.emulator.sums import a"), ("b", "import climb.emulator.memory")):
        (tmp_path / f"{name}.py").write_text(text)
    calls = {f"{name}.py::test": {"seconds": 1.0, "functions": []} for name in "ab"}
    assert Noticing(tmp_path, calls).stages(mutant) == [Stage((), ("a.py::test",))]


@pytest.mark.parametrize("mutated", ["climb/emulator/sums.py", "climb/emulator/sums/__init__.py"])
def test_tests_of_files_close_to_the_module_come_first(tmp_path: Path, mutated: str) -> None:
    """By the file's name, then by what it imports, then by a word of its text."""
    mutant = next(python.mutants(mutated, "a = 1\n"))
    texts = {
        "test_a": "assumes = consumers(sums_of)", "test_b": "from climb.bench import sums",
        "test_c": "from climb.emulator import (\n    memory,\n    sums,\n)", "test_d": "import climb.emulator.sums",
        "test_sums": "",
    }  # fmt: skip
    (tmp_path / "t").mkdir()
    for name, text in texts.items():
        (tmp_path / "t" / f"{name}.py").write_text(text)
    calls = {
        f"t/{file}.py::{test}": {"seconds": seconds, "functions": ["climb/emulator/sums/x.py::f"]}
        for file, test, seconds in (
            ("test_a", 1, 0.1), ("test_b", 1, 1.0), ("test_b", 2, 1.5), ("test_c", 1, 2.0), ("test_d", 1, 3.0),
            ("test_sums", 1, 4.0), ("test_sums", 2, 5.0),
        )
    }  # fmt: skip
    order = ["sums.py::1", "sums.py::2", "c.py::1", "d.py::1", "b.py::1", "b.py::2", "a.py::1"]
    (stage,) = Noticing(tmp_path, calls).stages(mutant)
    assert [test.removeprefix("t/test_") for test in stage.tests] == order


def test_command_has_its_options() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    mutate.add_arguments(parser)
    args = parser.parse_args(["--count", "3", "--area", "rungs"])
    assert (args.count, args.seed, args.area, args.jobs) == (3, 0, ["rungs"], 2)


def test_a_verdict_on_a_rung_depends_on_the_tests_of_its_chapter(tmp_path: Path) -> None:
    file = tmp_path / "kernels" / "c" / "l" / "01_naive.cu"
    tests = tmp_path / "tests" / "kernels" / "c" / "test_rungs.py"
    for path in (file, tests):
        path.parent.mkdir(parents=True)
        path.write_text("i < n\n")
    mutant = Mutant("kernels/c/l/01_naive.cu", "bounds", 2, 3, "<=", "i < n\n")
    before = Noticing(tmp_path).digest(mutant, "survived", "")
    assert before == Noticing(tmp_path).digest(mutant, "survived", "")
    tests.write_text("i <= n\n")
    assert before != Noticing(tmp_path).digest(mutant, "survived", "")


def test_machine_code_is_the_same_where_ptxas_leaves_out_what_nothing_reads() -> None:
    """NVRTC keeps a volatile instruction, whose result nothing reads; ptxas does not."""
    kernel = 'extern "C" __global__ void fill(int* a)\n{\n    int dead;\n    %s\n    a[threadIdx.x] = 1;\n}\n'
    plain = compile_cuda(kernel % "", filename="k.cu")
    dead = compile_cuda(kernel % 'asm volatile("mov.s32 %0, 7;" : "=r"(dead));', filename="k.cu")
    live = compile_cuda(kernel % 'asm volatile("mov.s32 %0, 7;" : "=r"(dead)); a += dead;', filename="k.cu")
    assert compiled.ptx_of(dead) != compiled.ptx_of(plain)
    assert compiled.machine_code_of(dead) == compiled.machine_code_of(plain) != compiled.machine_code_of(live)


def test_code_is_not_compiled_for_sizes_at_which_a_rung_launches_nothing() -> None:
    """Rows of length 0 do not compile. All of a rung's mutants would count as other programs."""
    problem = load_ladder("conv1d").problem
    empty = next(i for i, size in enumerate((*problem.headline, *problem.check)) if size["l"] == 0)
    place = f"conv1d/naive@{empty + 1}-sm_90"
    assert list(compiled.digests([f"conv1d/naive@{empty}-sm_90", place])) == [place]
