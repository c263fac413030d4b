"""The outcomes of mutants, and the survivors with an entry: an entry that the run contradicts is worthless."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from climb.cli import mutate
from climb.validation.mutation import Mutant, choosing, running, summary, survivors
from climb.validation.mutation.survivors import Known

ROOT = Path(__file__).resolve().parents[2]


MUTANT = Mutant("a.cu", "bounds", 2, 3, "<=", "i < n\n")
EQUIVALENT = {
    "file": "a.cu", "original": "i < n", "mutated": "i <= n", "kind": "equivalent", "reason": "n is never reached",
}  # fmt: skip
NOTICED = {**EQUIVALENT, "kind": "noticed", "test": "tests/test_a.py::test_bound"}


def _outcome(old: str, status: str, how: str = "") -> running.Outcome:
    return running.Outcome.of(Mutant("a.cu", "bounds", 0, len(old), "?", f"{old}\n"), status, how, 1.0)


def _known(old: str, kind: str, **more) -> Known:
    return Known("a.cu", old, "?", kind, f"Because of {old}.", **more)


def test_a_survivor_needs_a_reason(tmp_path: Path) -> None:
    outcome = running.Outcome.of(MUTANT, "survived", "", 1.0)
    path = tmp_path / "survivors.json"
    path.write_text(json.dumps([EQUIVALENT]))
    known = survivors.known_survivors(path)
    assert survivors.unexplained([outcome], known) == [] and survivors.unexplained([outcome], []) == [outcome]
    assert "n is never reached" in summary.summary([outcome], known)
    assert "0 of 1 mutants killed" in summary.summary([outcome], [])
    assert "NO REASON IS KNOWN" in summary.summary([outcome], [])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{**EQUIVALENT, "reason": " "}], "no reason is given"),
        ([{**EQUIVALENT, "kind": "unlucky"}], "no kind 'unlucky'"),
        ([EQUIVALENT, EQUIVALENT], "there twice"),
        ([{**NOTICED, "test": ""}], "of kind noticed, but its test is ''"),
        ([{**NOTICED, "test": "test_bound"}], "of kind noticed, but its test is 'test_bound'"),
        ([{**EQUIVALENT, "test": "tests/test_a.py::test_bound"}], "of kind equivalent, but its test is"),
    ],
)
def test_an_entry_that_says_too_little_or_too_much_is_refused(tmp_path: Path, entries, message: str) -> None:
    path = tmp_path / "survivors.json"
    path.write_text(json.dumps(entries))
    with pytest.raises(ValueError, match=message):
        survivors.known_survivors(path)


def test_every_known_survivor_is_a_mutant_of_its_file_and_its_test_is_there() -> None:
    for one in survivors.known_survivors():
        made = choosing.mutants_of_entries(ROOT, [(one.file, one.original, one.mutated)])
        assert any(survivors.explanation([one], mutant) for mutant in made), one
        if one.test:
            file, name = one.test.split("::")
            assert f"def {name.split('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), one


def test_an_entry_with_a_place_speaks_of_that_place_alone() -> None:
    text = "g(i < n)\n  f(i < n);\n  f(i < n);\n"
    first, second = (Mutant("a.cu", "bounds", at, at + 1, "<=", text) for at in (15, 27))
    assert (first.place, second.place) == (1, 2)
    assert (first.original_line, first.mutated_line) == (second.original_line, second.mutated_line)
    entry = {**EQUIVALENT, "original": "f(i < n);", "mutated": "f(i <= n);"}
    everywhere, there = Known(**entry), Known(**entry, place=2)
    outcome = running.Outcome.of(second, "survived", "", 1.0)
    assert [survivors.explanation([there], one) for one in (first, second, outcome)] == [None, there, there]
    assert [survivors.explanation([everywhere], one) for one in (first, second)] == [everywhere, everywhere]


def test_results_of_an_interrupted_run_are_read_again(tmp_path: Path) -> None:
    outcome = running.Outcome.of(Mutant("a.cu", "bounds", 2, 3, "<=", "i < n\n"), "killed", "test_a", 1.0)
    path = tmp_path / "mutation.json"
    assert summary.load_results(path) == {}
    path.write_text(json.dumps({"mutants": running.as_json([outcome])}))
    assert summary.load_results(path) == {outcome.key: outcome}
    path.write_text("{")
    assert summary.load_results(path) == {}


def test_a_mutant_that_compiles_to_the_same_code_is_not_counted() -> None:
    outcome = _outcome("a", "same", "compiles to the same PTX")
    assert survivors.unexplained([outcome], []) == []
    text = summary.summary([outcome, _outcome("b", "killed")], [])
    assert text.startswith("1 of 1 mutants killed (100.0 %)") and "1 that compile to the same code" in text


def test_share_is_of_all_mutants_but_those_that_survive_and_are_known_as_equivalent() -> None:
    outcomes = [_outcome(name, "killed" if name < "f" else "survived") for name in "abcdefgh"]
    known = [_known("f", "equivalent"), _known("g", "hardware")]
    text = summary.summary(outcomes, known)
    assert text.startswith("5 of 7 mutants killed (71.4 %)") and "bounds       5 of 7" in text
    assert "1 that survive because they are equivalent" in text
    alive, replaced = text.split("equivalent, replaced by others:")
    assert "hardware: Because of g." in alive and "NO REASON IS KNOWN" in alive and "Because of f." not in alive
    assert "- f" in replaced and "Because of f." in replaced and "WRONG" not in text


def test_a_killed_mutant_that_is_called_equivalent_counts_and_its_entry_is_wrong() -> None:
    outcome = _outcome("a", "killed", "tests/test_a.py::test_a")
    for kind in ("equivalent", "hardware"):
        known = [_known("a", kind)]
        assert survivors.counts(outcome, known)
        text = summary.summary([outcome], known)
        assert text.startswith("1 of 1 mutants killed") and "equivalent, replaced by others" not in text
        assert f"called {kind}, but killed: tests/test_a.py::test_a" in text.split("WRONG ENTRIES")[1]


@pytest.mark.parametrize("test", ["tests/test_a.py::test_a", "tests/test_a.py::test_a[case]"])
def test_a_mutant_that_its_named_test_kills_is_killed_and_listed(test: str) -> None:
    known = [_known("a", "noticed", test="tests/test_a.py::test_a")]
    text = summary.summary([_outcome("a", "killed", test), _outcome("b", "killed")], known)
    assert text.startswith("2 of 2 mutants killed (100.0 %)") and "1 by a test that survivors.json names" in text
    assert test in text.split("killed by the test that survivors.json names:")[1] and "WRONG" not in text


@pytest.mark.parametrize(
    ("status", "how", "wrong"),
    [
        ("survived", "", "test_a is named for it, but does not kill it"),
        ("unreached", "", "test_a is named for it, but does not kill it"),
        ("killed", "tests/test_a.py::test_abc", "test_a is named for it, but tests/test_a.py::test_abc kills it"),
        ("killed", "hangs: longer than 30 s", ""),
        ("same", "compiles to the same PTX", ""),
    ],
)
def test_an_entry_whose_named_test_does_not_kill_the_mutant_is_wrong(status: str, how: str, wrong: str) -> None:
    known, outcome = [_known("a", "noticed", test="tests/test_a.py::test_a")], _outcome("a", status, how)
    expected = wrong and f"tests/test_a.py::{wrong}"
    assert survivors.contradiction(outcome, known) == expected
    text = summary.summary([outcome], known)
    assert expected in text and ("WRONG ENTRIES" in text) == bool(wrong)
    assert bool(survivors.unexplained([outcome], known)) == (status in ("survived", "unreached"))


def test_a_verdict_against_an_entry_is_not_used_again_and_survivors_are_run_again_when_asked() -> None:
    test = "tests/test_a.py::test_a"
    known = [_known("a", "noticed", test=test), _known("b", "equivalent")]
    made = {
        name: _outcome(old, status, how)
        for name, old, status, how in (
            ("named", "a", "killed", test), ("other", "a", "killed", "tests/test_b.py::test_b"),
            ("before", "a", "survived", ""), ("equivalent", "b", "survived", ""), ("same", "a", "same", ""),
            ("by chance", "b", "killed", test), ("plain", "c", "killed", test),
        )
    }  # fmt: skip
    assert set(survivors.reusable(made, known, again=False)) == {"named", "equivalent", "same", "plain"}
    assert set(survivors.reusable(made, known, again=True)) == {"named", "same", "plain"}


def test_a_saved_run_is_read_again_with_its_survivors_and_counts_as_earlier_results(tmp_path: Path) -> None:
    outcomes = [_outcome("a", "killed", "tests/test_a.py::test_a"), _outcome("b", "survived")]
    known = [_known(name, "equivalent") for name in "bc"]
    run = summary.Run.of(7, "0123", outcomes, known)
    run.save(tmp_path / "mutation.json")
    assert summary.Run.load(tmp_path / "mutation.json") == run
    assert run.known == known[:1]  # the other was not met
    assert summary.load_results(tmp_path / "mutation.json") == {outcome.key: outcome for outcome in outcomes}
    assert (tmp_path / "mutation.txt").read_text() == run.text()
    assert "at 0123, seed 7" in run.text() and "Because of b." in run.text()


@pytest.fixture
def command(monkeypatch):
    """Run the command with these options, where the mutants, which it passes on, come to these outcomes."""

    def run(options: list[str], known: list[Known], *outcomes: running.Outcome) -> tuple[int, list, list[bool]]:
        passed = []

        def run_all(root, mutants, count, noticing, earlier, say, jobs, counts):
            passed.extend((list(mutants), [counts(outcome) for outcome in outcomes]))
            return list(outcomes)

        monkeypatch.setattr(running, "run_all", run_all)
        monkeypatch.setattr(choosing, "drawn_of_areas", lambda *_: iter(()))
        monkeypatch.setattr(survivors, "known_survivors", lambda: known)
        monkeypatch.setattr(summary, "load_results", lambda path: {})
        parser = argparse.ArgumentParser()
        mutate.add_arguments(parser)
        return mutate.run(parser.parse_args(["--area", "rungs", *options])), *passed

    return run


def test_command_fails_for_a_survivor_without_an_entry_and_for_an_entry_that_is_wrong(command) -> None:
    survived, killed = _outcome("a", "survived"), _outcome("a", "killed", "tests/test_a.py::test_b")
    equivalent, noticed = _known("a", "equivalent"), _known("a", "noticed", test="tests/test_a.py::test_a")
    cases = ((survived, None), (survived, equivalent), (killed, None), (killed, equivalent), (killed, noticed))
    assert [command([], [known] if known else [], one)[0] for one, known in cases] == [1, 0, 0, 1, 1]


def test_command_runs_every_mutant_that_has_an_entry_when_asked(command) -> None:
    known = survivors.known_survivors()[:3]
    survived = running.Outcome.of(Mutant(known[0].file, "bounds", 0, 1, "", "a\n"), "survived", "", 1.0)
    survived = replace(survived, original=known[0].original, mutated=known[0].mutated)
    _, mutants, counted = command(["--known"], known, survived)
    places = {(mutant.file, mutant.original_line, mutant.mutated_line) for mutant in mutants}
    assert places == {(one.file, one.original, one.mutated) for one in known}
    assert counted == [True] and command([], known, survived) == (0, [], [False])


def test_97_of_100_mutants_of_the_saved_run_are_killed_and_every_survivor_has_a_reason() -> None:
    run = summary.Run.load(mutate.SAVED)
    assert mutate.SAVED.with_suffix(".txt").read_text(encoding="utf-8") == run.text()
    assert survivors.unexplained(run.outcomes, run.known) == []
    assert not any(survivors.contradiction(outcome, run.known) for outcome in run.outcomes)
    counted = [outcome for outcome in run.outcomes if survivors.counts(outcome, run.known)]
    killed = sum(outcome.status == "killed" for outcome in counted)
    assert len(counted) >= 300 and killed >= 0.97 * len(counted)
