"""Runs of mutants in copies of the repository: killed and survived are told apart, and a run cleans up."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from climb.emulator.translation import cache
from climb.validation.mutation import Mutant, calls, cuda, python, running, tracing
from climb.validation.mutation.copies import Copy
from climb.validation.mutation.noticing import Noticing, Stage
from climb.validation.mutation.processes import Stopped, interrupted_once, workplace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch) -> Path:
    """A repository with one module, and a test that notices some of its mistakes, hangs at one and fails anyhow."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # its tests need none, and loading them takes longer
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


@pytest.fixture
def believed(monkeypatch):
    """Take a kill for one without running its test once more, which takes time; other tests are about that."""
    monkeypatch.setattr(Copy, "passes_with", lambda copy, mutant, test: False)


def test_traced_tests_translate_their_kernels_although_a_translation_is_kept(monkeypatch) -> None:
    monkeypatch.setattr(cache, "keep", cache.keep)
    tracing.pytest_configure()
    made = []
    for _ in range(2):
        cache.keep(cache.name_of("a kernel that no test has"), lambda: made.append("anew"))
    assert made == ["anew", "anew"]


@pytest.mark.thorough
def test_killed_survived_and_unreached_are_told_apart(toy: Path, tmp_path: Path) -> None:
    names = {"test_always_fails": "count", "test_count": "count", "test_unseen": "unseen"}
    calls = {
        f"tests/test_m.py::{test}": {"seconds": 0.1, "functions": [f"climb/bench/m.py::{function}"]}
        for test, function in names.items()
    }
    copy, noticing = Copy(toy, tmp_path / "copy"), Noticing(toy, calls)
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
    outcome = running.run_one(Copy(toy, tmp_path / "copy"), Noticing(toy, calls), _toy_mutant(toy, "n + 1", "n + 2"))
    assert outcome.status == "survived"


@pytest.mark.parametrize(("clean", "status", "how"), [(0, "killed", "hangs"), (None, "survived", "its tests need")])
def test_a_hang_kills_a_mutant_if_its_tests_end_without_it(toy: Path, tmp_path: Path, clean, status, how) -> None:
    class Hanging(Copy):
        def pytest(self, arguments, seconds, **environment):
            mutated = (self.folder / "climb/bench/m.py").read_text() != (toy / "climb/bench/m.py").read_text()
            return (None if mutated else clean), ""

    calls = {"tests/test_m.py::test_count": {"seconds": 0.1, "functions": ["climb/bench/m.py::count"]}}
    outcome = running.run_one(
        Hanging(toy, tmp_path / "copy"), Noticing(toy, calls), _toy_mutant(toy, "i += 1", "i = 1")
    )
    assert outcome.status == status and outcome.how.startswith(how)


@pytest.mark.thorough
def test_a_run_that_does_not_end_is_ended(toy: Path, tmp_path: Path) -> None:
    copy = Copy(toy, tmp_path / "copy")
    with copy.planted(_toy_mutant(toy, "i += 1", "i = 1")):
        status, _ = copy.pytest(["tests/test_m.py::test_count"], 1.0)
    assert status is None


def test_the_repository_itself_is_never_changed(toy: Path, believed) -> None:
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


def test_a_mutant_that_does_not_count_is_replaced_by_another(toy: Path, monkeypatch) -> None:
    monkeypatch.setattr(running, "run_one", lambda copy, noticing, one: running.Outcome.of(one, "survived", "", 1.0))
    drawn = [_toy_mutant(toy, *lines) for lines in (("i < n", "i <= n"), ("i = 0", "i = 1"), ("n + 1", "n + 2"))]

    def counts(outcome: running.Outcome) -> bool:
        return outcome.key != drawn[0].key

    outcomes = running.run_all(toy, iter(drawn), 1, Noticing(toy), {}, lambda outcome: None, 1, counts)
    assert [outcome.key for outcome in outcomes] == [mutant.key for mutant in drawn[:2]]


class Scripted(Copy):
    """A copy whose tests fail with a mutant if they are among ``failing``; one by itself does not fail if it is among
    ``by_chance``."""

    failing: tuple[str, ...] = ()
    by_chance: tuple[str, ...] = ()

    def pytest(self, arguments, seconds, **environment):
        (listed,) = arguments
        tests = Path(listed[1:]).read_text().splitlines() if listed.startswith("@") else {listed} - {*self.by_chance}
        assert tests or not listed.startswith("@"), "pytest takes an empty list for all tests that there are"
        mutated = any((self.folder / name).read_text() != text for name, text in self.texts.items())
        failed = [test for test in tests if mutated and test in self.failing]
        return (1, f"FAILED {failed[0]} - assert False") if failed else (0, "")


@pytest.mark.parametrize(
    ("failing", "status", "how"),
    [
        (("tests/test_m.py::test_named", "tests/test_m.py::test_chosen"), "killed", "tests/test_m.py::test_named"),
        (("tests/test_m.py::test_chosen",), "killed", "tests/test_m.py::test_chosen"),
        ((), "survived", ""),
    ],
)
def test_a_named_test_runs_first_and_the_chosen_ones_after_it(toy: Path, tmp_path: Path, failing, status, how) -> None:
    mutant = _toy_mutant(toy, "i < n", "i <= n")
    copy = Scripted(toy, tmp_path / "copy")
    copy.failing, copy.texts = failing, {mutant.file: mutant.text}
    calls = {"tests/test_m.py::test_chosen": {"seconds": 0.1, "functions": ["climb/bench/m.py::count"]}}
    noticing = Noticing(toy, calls, lambda one: "tests/test_m.py::test_named" if one == mutant else "")
    outcome = running.run_one(copy, noticing, mutant)
    assert (outcome.status, outcome.how) == (status, how)
    assert running.run_one(copy, Noticing(toy, {}, noticing.named), mutant).status == (
        "killed" if "tests/test_m.py::test_named" in failing else "survived"
    )


def test_a_test_that_fails_by_chance_kills_nothing(toy: Path, tmp_path: Path) -> None:
    mutant, first, second = _toy_mutant(toy, "i < n", "i <= n"), "tests/test_m.py::test_a", "tests/test_m.py::test_b"
    copy = Scripted(toy, tmp_path / "copy")
    copy.failing, copy.by_chance, copy.texts = (first, second), (first,), {mutant.file: mutant.text}
    calls = {test: {"seconds": 0.1, "functions": ["climb/bench/m.py::count"]} for test in (first, second)}
    killed = running.run_one(copy, Noticing(toy, calls), mutant)
    assert (killed.status, killed.how) == ("killed", second)
    survived = running.run_one(copy, Noticing(toy, {first: calls[first]}), mutant)
    assert (survived.status, survived.how) == ("survived", f"{first} fails by chance")


def test_a_rung_is_given_its_named_test_first() -> None:
    mutant = Mutant("kernels/coalescing/strided/01_strided.cu", "bounds", 0, 1, "", "i\n")
    plain, named = Noticing(ROOT).stages(mutant), Noticing(ROOT, named=lambda one: "tests/a.py::test_a").stages(mutant)
    assert named == [Stage((), ("tests/a.py::test_a",)), *plain] and len(plain) > 1


@pytest.fixture
def git(toy: Path):
    """Git in the toy repository, in which everything is committed."""

    def run(*arguments: str, folder: Path = toy) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        made = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
        return made.stdout

    for command in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "All")):
        run(*command)
    return run


@pytest.mark.parametrize("linked", [False, True])
def test_a_copy_has_the_history_of_a_checkout_or_a_linked_worktree_and_an_index_of_its_own(
    toy: Path, tmp_path: Path, git, linked: bool
) -> None:
    root = toy
    if linked:
        root = tmp_path / "linked"
        git("worktree", "add", "--quiet", str(root))
    git("commit", "--quiet", "--allow-empty", "--message", "Another", folder=root)
    folder = Copy(root, tmp_path / "copy").folder
    assert git("rev-parse", "HEAD", "HEAD~1", folder=folder) == git("rev-parse", "HEAD", "HEAD~1", folder=root)
    assert git("status", "--porcelain", folder=folder) == ""
    assert git("archive", "HEAD~1", "climb", folder=folder)
    git("rm", "--quiet", "-r", "--cached", "tests", folder=folder)
    assert git("ls-files", folder=folder) == "climb/bench/m.py\n"
    assert git("status", "--porcelain", folder=root) == ""


def test_a_copy_has_no_history_if_the_repository_is_a_folder_of_another_one(toy: Path, tmp_path: Path, git) -> None:
    copy = Copy(toy / "climb", tmp_path / "copy")
    assert not (copy.folder / ".git").exists()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch) -> Path:
    """The folder for what is temporary."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _is_running(process: int) -> bool:
    """Return whether a process runs: one that has ended may wait for its parent to look."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_interrupted_ends_its_processes_with_their_children_and_removes_its_copies(
    toy: Path, tmp_path: Path, scratch: Path, monkeypatch, number: signal.Signals
) -> None:
    started = tmp_path / "started"

    def wait_long(copy: Copy, *arguments):
        command = f"sleep 60 & echo $$ $! >> {started}; wait"
        return copy._processes.run(["sh", "-c", command], copy.folder, {}, 60.0)

    def send() -> None:
        while not (started.exists() and len(started.read_text().split()) == 4):
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(Copy, "pytest", wait_long)
    mutants = [_toy_mutant(toy, *lines) for lines in (("i < n", "i <= n"), ("i = 0", "i = 1"), ("i += 1", "i = 1"))]
    calls = {"tests/test_m.py::test_count": {"seconds": 0.1, "functions": ["climb/bench/m.py::count"]}}
    before = signal.signal(number, signal.default_int_handler)  # what runs in the background may have it ignored
    try:
        threading.Thread(target=send, daemon=True).start()
        with pytest.raises(KeyboardInterrupt), interrupted_once():
            running.run_all(toy, iter(mutants), 3, Noticing(toy, calls), {}, lambda outcome: None, 2)
        assert signal.getsignal(number) == signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert list(scratch.iterdir()) == []
    processes = [int(one) for one in started.read_text().split()]
    assert len(processes) == 4
    end = time.monotonic() + 30.0  # they close their files some time before they are gone; they would wait for 60 s
    while any(map(_is_running, processes)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(_is_running, processes))


def test_a_second_signal_does_not_cut_the_cleaning_up_short_and_one_that_was_ignored_stays_so() -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with pytest.raises(KeyboardInterrupt), interrupted_once():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(10.0)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.01)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_an_error_in_one_thread_ends_what_the_others_run(scratch: Path, tmp_path: Path) -> None:
    """Otherwise a run of two hours goes on after its end is certain."""

    def fail() -> None:
        raise RuntimeError("wrong")

    with pytest.raises(RuntimeError, match="wrong"), workplace(2) as (folder, processes, pool):
        waiting = pool.submit(processes.run, ["sleep", "60"], folder, {})
        pool.submit(fail).result()
    assert isinstance(waiting.exception(), Stopped | CancelledError) and list(scratch.iterdir()) == []
    with pytest.raises(Stopped):
        processes.run(["true"], tmp_path, {})


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy of this repository; what is planted in it is taken out again."""
    return Copy(ROOT, tmp_path_factory.mktemp("copies") / "copy")


@pytest.mark.thorough
def test_a_toy_rung_is_killed_by_its_own_checks_and_not_by_its_text(copy: Copy, believed) -> None:
    """The real checks of one rung, in a copy of this repository."""
    pytest.importorskip("hypothesis")
    file = "kernels/coalescing/strided/01_strided.cu"
    text = (ROOT / file).read_text(encoding="utf-8")
    mutants = {m.mutated_line: m for m in cuda.mutants(file, text) if m.operator == "bounds"}
    mutant = next(iter(mutants.values()))
    outcome = running.run_one(copy, Noticing(ROOT), mutant)
    assert outcome.status == "killed" and "right_at" in outcome.how


def test_a_verdict_counts_until_its_tests_change(toy: Path, believed) -> None:
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


@pytest.mark.thorough
def test_digest_of_a_rungs_code_ignores_comments_and_notices_changes(copy: Copy) -> None:
    file = "kernels/coalescing/strided/01_strided.cu"
    text = (ROOT / file).read_text(encoding="utf-8")
    commented = Mutant(file, "comments", 0, 0, "// Another line.\n", text)
    changed = next(mutant for mutant in cuda.mutants(file, text) if mutant.operator == "bounds")
    assert copy.same_code(commented, ["strided/strided"]) == "PTX"
    assert copy.same_code(changed, ["strided/strided"]) == ""


def test_code_without_a_mutant_is_compiled_once_for_each_question(toy: Path, tmp_path: Path) -> None:
    mutant, asked = _toy_mutant(toy, "i < n", "i <= n"), []

    class Compiling(Copy):
        """A copy in which a mutant changes the PTX at the first place and nothing else."""

        def digests(self, rungs, *options):
            mutated = (self.folder / mutant.file).read_text() != mutant.text
            asked.append((tuple(rungs), options, mutated))
            return {one: f"{one} {options} {mutated and not options and one == 'a@0'}" for one in rungs}

    copy = Compiling(toy, tmp_path / "copy")
    both, one, code = ["a@0", "b@0"], ["a@0"], ("--machine-code",)
    assert [copy.same_code(mutant, places) for places in (both, both, one)] == ["machine code"] * 3
    assert copy.same_code(mutant, ["b@0"]) == "PTX"
    assert [question for *question, mutated in asked if not mutated] == [
        [tuple(both), ()], [tuple(one), code], [tuple(one), ()], [("b@0",), ()],
    ]  # fmt: skip
    assert sum(mutated for *_, mutated in asked) == 7


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
