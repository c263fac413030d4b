"""Mutation testing: operators make the mistakes that they name, seeds reproduce, killed and survived are told apart."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest

from climb.cli import mutate
from climb.toolchain import compile_cuda
from climb.validation.mutation import Mutant, calls, choosing, compiled, cuda, python, running, same_python, summary
from climb.validation.mutation.noticing import Noticing, Stage, enclosing

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


def test_tests_of_a_file_that_names_the_module_come_first(tmp_path: Path) -> None:
    mutant = next(python.mutants("climb/emulator/sums.py", "a = 1\n"))
    (tmp_path / "t").mkdir()
    for name, text in (("a", "import consumers"), ("b", "from climb.emulator import sums")):
        (tmp_path / "t" / f"{name}.py").write_text(text)
    calls = {
        test: {"seconds": seconds, "functions": ["climb/emulator/sums.py::f"]}
        for test, seconds in {"t/a.py::1": 1.0, "t/b.py::1": 2.0, "t/b.py::2": 3.0}.items()
    }
    (stage,) = Noticing(tmp_path, calls).stages(mutant)
    assert stage.tests == ("t/b.py::1", "t/b.py::2", "t/a.py::1")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A repository with one module, and a test that notices some of its mistakes, hangs at one and fails anyhow."""
    root = tmp_path / "toy"
    (root / "climb" / "bench").mkdir(parents=True)
    (root / "climb" / "bench" / "m.py").write_text(
        "def count(n):\n    i = 0\n    while i < n:\n        i += 1\n    return i\n\n\n"
        "def unseen(n):\n    return n + 1\n"
    )
    (root / "tests").mkdir()
    (root / "tests" / "test_m.py").write_text(
        "import sys\nsys.path.insert(0, '.')\nfrom climb.bench.m import count, unseen\n\n\n"
        "def test_always_fails():\n    count(1)\n    assert False\n\n\n"
        "def test_count():\n    assert count(3) == 3\n\n\n"
        "def test_unseen():\n    assert unseen(0)\n"
    )
    return root


def _toy_mutant(root: Path, old: str, new: str) -> Mutant:
    text = (root / "climb/bench/m.py").read_text()
    (mutant,) = [m for m in python.mutants("climb/bench/m.py", text) if m.mutated == text.replace(old, new)]
    return mutant


def test_killed_survived_and_unreached_are_told_apart(toy: Path, tmp_path: Path) -> None:
    names = {"test_always_fails": "count", "test_count": "count", "test_unseen": "unseen"}
    calls = {
        f"tests/test_m.py::{test}": {"seconds": 0.1, "functions": [f"climb/bench/m.py::{function}"]}
        for test, function in names.items()
    }
    copy, noticing = running.Copy(toy, tmp_path / "copy"), Noticing(toy, calls)
    killed = running.run_one(copy, noticing, _toy_mutant(toy, "i < n", "i <= n"))
    assert (killed.status, killed.how) == ("killed", "tests/test_m.py::test_count")  # not by the test that fails anyhow
    survived = running.run_one(copy, noticing, _toy_mutant(toy, "n + 1", "n + 2"))
    assert (survived.status, survived.how) == ("survived", "")
    unreached = running.run_one(copy, Noticing(toy, {}), _toy_mutant(toy, "n + 1", "n - 1"))
    assert unreached.status == "unreached"
    assert (tmp_path / "copy/climb/bench/m.py").read_text() == (toy / "climb/bench/m.py").read_text()


def test_a_test_that_is_gone_since_it_was_traced_kills_nothing(toy: Path, tmp_path: Path) -> None:
    calls = {
        f"tests/test_m.py::{test}": {"seconds": 0.1, "functions": ["climb/bench/m.py::unseen"]}
        for test in ("test_gone", "test_unseen", "test_of[a case]")
    }
    outcome = running.run_one(
        running.Copy(toy, tmp_path / "copy"), Noticing(toy, calls), _toy_mutant(toy, "n + 1", "n + 2")
    )
    assert outcome.status == "survived"


@pytest.mark.parametrize(("clean", "status", "how"), [(0, "killed", "hangs"), (None, "survived", "its tests need")])
def test_a_hang_kills_a_mutant_if_its_tests_end_without_it(toy: Path, tmp_path: Path, clean, status, how) -> None:
    class Hanging(running.Copy):
        def pytest(self, arguments, seconds, **environment):
            mutated = (self.folder / "climb/bench/m.py").read_text() != (toy / "climb/bench/m.py").read_text()
            return (None if mutated else clean), ""

    calls = {"tests/test_m.py::test_count": {"seconds": 0.1, "functions": ["climb/bench/m.py::count"]}}
    outcome = running.run_one(
        Hanging(toy, tmp_path / "copy"), Noticing(toy, calls), _toy_mutant(toy, "i += 1", "i = 1")
    )
    assert outcome.status == status and outcome.how.startswith(how)


def test_a_run_that_does_not_end_is_ended(toy: Path, tmp_path: Path) -> None:
    copy = running.Copy(toy, tmp_path / "copy")
    with copy.planted(_toy_mutant(toy, "i += 1", "i = 1")):
        status, _ = copy.pytest(["tests/test_m.py::test_count"], 1.0)
    assert status is None


def test_the_repository_itself_is_never_changed(toy: Path) -> None:
    before = (toy / "climb/bench/m.py").read_text()
    calls = {"tests/test_m.py::test_count": {"seconds": 0.1, "functions": ["climb/bench/m.py::count"]}}
    mutants = iter([_toy_mutant(toy, "i < n", "i <= n"), _toy_mutant(toy, "i = 0", "i = 1")])
    said: list[running.Outcome] = []
    outcomes = running.run_all(toy, mutants, 2, Noticing(toy, calls), {}, said.append, jobs=2)
    assert {outcome.operator: outcome.status for outcome in outcomes} == {"bounds": "killed", "constants": "survived"}
    assert (toy / "climb/bench/m.py").read_text() == before
    assert {outcome.key: outcome for outcome in said} == {outcome.key: outcome for outcome in outcomes}
    assert [outcome.line for outcome in outcomes] == [3, 2]  # in the order of the mutants, whichever ended first
    again = running.run_all(toy, iter([_toy_mutant(toy, "i < n", "i <= n")]), 1, Noticing(toy, {}),
                            {outcome.key: outcome for outcome in outcomes}, said.append)  # fmt: skip
    assert again == [next(o for o in outcomes if o.operator == "bounds")]  # known, and so not run again


def test_a_survivor_needs_a_reason(tmp_path: Path) -> None:
    mutant = Mutant("a.cu", "bounds", 2, 3, "<=", "i < n\n")
    outcome = running.Outcome.of(mutant, "survived", "", 1.0)
    path = tmp_path / "equivalent.json"
    entry = {"file": "a.cu", "original": "i < n", "mutated": "i <= n"}
    entry |= {"kind": "equivalent", "reason": "n is never reached"}
    path.write_text(json.dumps([entry]))
    known = summary.known_survivors(path)
    assert summary.unexplained([outcome], known) == [] and summary.unexplained([outcome], []) == [outcome]
    assert "0 of 1 mutants killed" in summary.summary([outcome], known)
    assert "n is never reached" in summary.summary([outcome], known)
    assert "NO REASON IS KNOWN" in summary.summary([outcome], [])
    path.write_text(json.dumps([{**entry, "reason": " "}]))
    with pytest.raises(ValueError, match="no reason is given"):
        summary.known_survivors(path)
    path.write_text(json.dumps([{**entry, "kind": "unlucky"}]))
    with pytest.raises(ValueError, match="no kind 'unlucky'"):
        summary.known_survivors(path)
    path.write_text(json.dumps([entry, entry]))
    with pytest.raises(ValueError, match="there twice"):
        summary.known_survivors(path)


def test_every_known_survivor_is_a_mutant_of_its_file() -> None:
    for one in summary.known_survivors():
        made = choosing.mutants_of(ROOT, one.file)
        assert any((m.original_line, m.mutated_line) == (one.original, one.mutated) for m in made), one


def test_results_of_an_interrupted_run_are_read_again(tmp_path: Path) -> None:
    outcome = running.Outcome.of(Mutant("a.cu", "bounds", 2, 3, "<=", "i < n\n"), "killed", "test_a", 1.0)
    path = tmp_path / "mutation.json"
    assert summary.load_results(path) == {}
    path.write_text(json.dumps({"mutants": running.as_json([outcome])}))
    assert summary.load_results(path) == {outcome.key: outcome}
    path.write_text("{")
    assert summary.load_results(path) == {}


def test_a_toy_rung_is_killed_by_its_own_checks_and_not_by_its_text(tmp_path: Path) -> None:
    """The real checks of one rung, in a copy of this repository with that chapter alone."""
    pytest.importorskip("hypothesis")
    file = "kernels/coalescing/strided/01_strided.cu"
    text = (ROOT / file).read_text(encoding="utf-8")
    mutants = {m.mutated_line: m for m in cuda.mutants(file, text) if m.operator == "bounds"}
    mutant = next(iter(mutants.values()))
    copy = running.Copy(ROOT, tmp_path / "copy")
    outcome = running.run_one(copy, Noticing(ROOT), mutant)
    assert outcome.status == "killed" and "right_at" in outcome.how
    shutil.rmtree(tmp_path / "copy")


def test_command_has_its_options() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    mutate.add_arguments(parser)
    args = parser.parse_args(["--count", "3", "--area", "rungs"])
    assert (args.count, args.seed, args.area, args.jobs) == (3, 0, ["rungs"], 2)


def _outcome(old: str, status: str, how: str = "") -> running.Outcome:
    return running.Outcome.of(Mutant("a.cu", "bounds", 0, len(old), "?", f"{old}\n"), status, how, 1.0)


def test_a_mutant_that_compiles_to_the_same_code_is_not_counted() -> None:
    outcome = _outcome("a", "same", "compiles to the same PTX")
    assert summary.unexplained([outcome], []) == []
    text = summary.summary([outcome, _outcome("b", "killed")], [])
    assert text.startswith("1 of 1 mutants killed (100.0 %)") and "1 that compile to the same code" in text


def test_shares_of_all_and_of_those_that_a_test_can_notice() -> None:
    outcomes = [_outcome(name, "killed" if name < "f" else "survived") for name in "abcdefgh"]
    kinds = {"f": "equivalent", "g": "noticed", "h": "hardware"}
    known = [summary.Known("a.cu", name, "?", kind, f"Because of {name}.") for name, kind in kinds.items()]
    text = summary.summary(outcomes, known)
    assert "5 of 8 mutants killed (62.5 %)" in text
    assert "6 of the 7 that a test can notice are noticed (85.7 %)" in text
    assert "1 survivors are hardware: only a GPU can tell" in text and "hardware: Because of h." in text


def test_a_saved_run_is_read_again_with_its_survivors_and_counts_as_earlier_results(tmp_path: Path) -> None:
    outcomes = [_outcome("a", "killed", "tests/test_a.py::test_a"), _outcome("b", "survived")]
    known = [summary.Known("a.cu", name, "?", "equivalent", f"Because of {name}.") for name in "bc"]
    run = summary.Run.of(7, "0123", outcomes, known)
    run.save(tmp_path / "mutation.json")
    assert summary.Run.load(tmp_path / "mutation.json") == run
    assert run.known == known[:1]  # the other was not met
    assert summary.load_results(tmp_path / "mutation.json") == {outcome.key: outcome for outcome in outcomes}
    assert (tmp_path / "mutation.txt").read_text() == run.text()
    assert "at 0123, seed 7" in run.text() and "Because of b." in run.text()


def test_a_verdict_counts_until_its_tests_change(toy: Path) -> None:
    calls = {"tests/test_m.py::test_count": {"seconds": 0.1, "functions": ["climb/bench/m.py::count"]}}
    mutant = _toy_mutant(toy, "i < n", "i <= n")
    noticing, test = Noticing(toy, calls), toy / "tests" / "test_m.py"
    digests = {how: noticing.digest(mutant, "killed", how) for how in ("tests/test_m.py::test_count", "hangs")}
    (first,) = running.run_all(toy, iter([mutant]), 1, noticing, {}, lambda outcome: None, 1)
    assert first.tests == digests["tests/test_m.py::test_count"]
    test.write_text(test.read_text().replace("count(3) == 3", "count(3)"))
    assert not any(Noticing(toy, calls).digest(mutant, "killed", how) == old for how, old in digests.items())
    (second,) = running.run_all(toy, iter([mutant]), 1, noticing, {first.key: first}, lambda outcome: None, 1)
    assert (first.status, second.status) == ("killed", "survived")
    (third,) = running.run_all(toy, iter([mutant]), 1, noticing, {first.key: first}, lambda _: None, 1, lambda _: True)
    assert third == first  # the verdict on a known survivor is final


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


def test_only_files_of_tests_that_changed_or_call_what_changed_are_traced_again(toy: Path, monkeypatch) -> None:
    other = toy / "tests" / "test_other.py"
    other.write_text("def test_nothing():\n    pass\n")
    files, traced, kept = ["tests/test_m.py", "tests/test_other.py"], [], toy / "calls.json"

    def trace(root, tests, jobs):
        traced.append(list(tests))
        functions = {"tests/test_m.py": ["climb/bench/m.py::count"], "tests/test_other.py": []}
        return {f"{file}::test": {"seconds": 0.1, "functions": functions[file]} for file in tests}

    monkeypatch.setattr(running, "trace", trace)
    first = calls.calls(toy, kept, files)
    assert set(first) == {f"{file}::test" for file in files}
    assert calls.calls(toy, kept, files) == first and traced == [files]
    (toy / "climb" / "bench" / "m.py").write_text("")
    assert calls.calls(toy, kept, files) == first
    other.write_text("")
    assert calls.calls(toy, kept, files) == first
    assert traced == [files, files[:1], files[1:]]
    kept.write_text("{")
    assert calls.calls(toy, kept, files) == first and traced[3:] == [files]


def test_digest_of_a_rungs_code_ignores_comments_and_notices_changes(tmp_path: Path) -> None:
    file = "kernels/coalescing/strided/01_strided.cu"
    text = (ROOT / file).read_text(encoding="utf-8")
    copy = running.Copy(ROOT, tmp_path / "copy")
    commented = Mutant(file, "comments", 0, 0, "// Another line.\n", text)
    changed = next(mutant for mutant in cuda.mutants(file, text) if mutant.operator == "bounds")
    assert copy.same_code(commented, ["strided/strided"]) == "PTX"
    assert copy.same_code(changed, ["strided/strided"]) == ""


def test_machine_code_is_the_same_where_ptxas_leaves_out_what_nothing_reads() -> None:
    """NVRTC keeps a volatile instruction, whose result nothing reads; ptxas does not."""
    kernel = 'extern "C" __global__ void fill(int* a)\n{\n    int dead;\n    %s\n    a[threadIdx.x] = 1;\n}\n'
    plain = compile_cuda(kernel % "", filename="k.cu")
    dead = compile_cuda(kernel % 'asm volatile("mov.s32 %0, 7;" : "=r"(dead));', filename="k.cu")
    live = compile_cuda(kernel % 'asm volatile("mov.s32 %0, 7;" : "=r"(dead)); a += dead;', filename="k.cu")
    assert compiled.ptx_of(dead) != compiled.ptx_of(plain)
    assert compiled.machine_code_of(dead) == compiled.machine_code_of(plain) != compiled.machine_code_of(live)


def test_the_saved_run_kills_97_of_100_mistakes_that_a_test_can_notice_and_explains_the_others() -> None:
    run = summary.Run.load(mutate.SAVED)
    assert mutate.SAVED.with_suffix(".txt").read_text(encoding="utf-8") == run.text()
    assert summary.unexplained(run.outcomes, run.known) == []
    decided = [outcome for outcome in run.outcomes if outcome.status not in running.NOT_COUNTED]
    alive = [summary.explanation(run.known, outcome) for outcome in decided if outcome.status != "killed"]
    other = sum(known.kind != "noticed" for known in alive)
    mistakes = len(decided) - sum(known.kind == "equivalent" for known in alive)
    assert len(decided) - other >= 0.97 * mistakes
