"""The command line: every command is registered, starts with little, and answers a wrong line with one line."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

from climb.cli import COMMANDS, common, main
from climb.cli.errors import Unavailable, UsageError

ROOT = Path(__file__).resolve().parents[2]
#: What a machine without the extras lacks.
EXTRAS = ("cupy", "torch", "msgspec", "matplotlib", "pygments", "IPython", "nbconvert", "pytest", "hypothesis")


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, (_, summary) in COMMANDS.items():
        assert f"    {name} " in shown and summary in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: climb {command}")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "climb: error: the following arguments are required: COMMAND (see climb --help)\n"),
        (["climp"], "climb: error: argument COMMAND: invalid choice: 'climp'"),
        (["emulate"], "climb emulate: error: the following arguments are required: file, --grid, --block"),
        (["record", "transpoze"], "climb record: error: no ladder 'transpoze'; the ladders are "),
        (["record", "--only", "dance"], "climb record: error: no step 'dance'; the steps are ceilings, measure, "),
        (["record", "--size", "rows"], "climb record: error: argument --size: 'rows' is no size"),
        (["record", "copy", "--rung", "x", "--only", "measure"], "climb record: error: --rung and --size measure a"),
        (["profile", "transpoze"], "climb profile: error: no ladder 'transpoze'"),
        (["search", "copy"], "climb search: error: the ladder copy has no search"),
        (["repeats", "no.such.module"], "climb repeats: error: no module no"),
        (["agreement", "--compare", "--ladder", "copy"], "climb agreement: error: --compare takes no other option"),
        (["figures", "no/where"], "climb figures: error: no folder no/where"),
        (["sanitize"], "climb sanitize: error: the following arguments are required: {faults,clean,stages}"),
        (["compare", "nvidia-h200", "nowhere"], "climb compare: error: no folder of records 'nowhere'; expected"),
        (["check"], "climb check: error: expected FILE.cu, with --exercise CHAPTER/NAME; climb check --list names"),
        (["check", "x.cu"], "climb check: error: cannot read x.cu"),
        (["check", "README.md"], "climb check: error: no exercise is called README or has a kernel of README.md"),
        (["check", "kernels/emulator/exercises/smooth.cu"], "may solve emulator/smooth, occupancy/smooth; say which"),
        (["check", "x.cu", "--hint", "3"], "climb check: error: argument --hint: invalid choice: 3"),
        (["check", "x.cu", "--exercise", "fields"], "climb check: error: no exercise 'fields'; expected CHAPTER/NAME"),
        (["check", "x.cu", "--exercise", "coalescing/feelds"], "coalescing has no exercise 'feelds'; it has "),
        (["check", "nowhere.cu", "--exercise", "coalescing/fields"], "climb check: error: cannot read nowhere.cu"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_gives_one_line_and_status_2(argv, says, capsys):
    assert main(argv) == 2
    shown = capsys.readouterr()
    assert says in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_a_command_whose_module_is_not_installed_says_so(monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "later", ("climb.cli.later", "what is to come"))
    assert main(["later"]) == 2
    assert capsys.readouterr().err == "climb later: error: this installation does not have that command\n"


def run_with(monkeypatch, raised):
    """Run a command whose ``run`` raises."""
    module = types.ModuleType("climb.cli.broken", "A command that fails.")
    module.add_arguments = lambda parser: None

    def run(args: argparse.Namespace) -> int:
        raise raised

    module.run = run
    monkeypatch.setitem(sys.modules, "climb.cli.broken", module)
    monkeypatch.setitem(COMMANDS, "broken", ("climb.cli.broken", "fail"))
    return main(["broken"])


@pytest.mark.parametrize(
    ("raised", "status", "says"),
    [
        (UsageError("no such thing"), 2, "climb broken: error: no such thing\n"),
        (Unavailable("there is no GPU"), 1, "climb broken: there is no GPU\n"),
        (KeyboardInterrupt(), 130, "climb broken: interrupted\n"),
        (
            ModuleNotFoundError("No module named 'torch'", name="torch"),
            2,
            "climb broken: error: it needs torch, which is not installed: pip install '.[gpu]'\n",
        ),
        (
            ModuleNotFoundError("No module named 'matplotlib.pyplot'", name="matplotlib.pyplot"),
            2,
            "climb broken: error: it needs matplotlib.pyplot, which is not installed: pip install '.[book]'\n",
        ),
    ],
)
def test_what_a_command_raises_becomes_a_line_and_a_status(monkeypatch, capsys, raised, status, says):
    assert run_with(monkeypatch, raised) == status
    assert capsys.readouterr().err == says


def test_a_module_that_no_extra_brings_is_an_error_of_ours(monkeypatch):
    with pytest.raises(ModuleNotFoundError):
        run_with(monkeypatch, ModuleNotFoundError("No module named 'climb.bench.lost'", name="climb.bench.lost"))


def bare(*argv: str, body: str = "") -> subprocess.CompletedProcess[str]:
    """The command line in a fresh Python in which the extras cannot be imported; ``body`` runs at the end."""
    code = (
        "import sys\n"
        f"for name in {EXTRAS!r}: sys.modules[name] = None\n"
        "from climb.cli import main\n"
        f"status = main({list(argv)!r})\n{body}\nsys.exit(status)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)


def test_help_imports_the_standard_library_alone():
    done = bare("--help", body="assert 'numpy' not in sys.modules and 'climb.emulator' not in sys.modules")
    assert (done.returncode, done.stderr) == (0, "")
    done = bare("emulate", "--help", body="assert 'climb.emulator' not in sys.modules")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.thorough
def test_every_exercise_is_listed_and_checked_without_the_extras(tmp_path):
    done = bare("check", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert "coalescing/fields" in listed and "warp_shuffles/scan" in listed
    skeleton = bare("check", "--skeleton", "coalescing/fields")
    assert skeleton.returncode == 0 and "__global__" in skeleton.stdout
    mine = tmp_path / "mine.cu"
    mine.write_text(skeleton.stdout, encoding="utf-8")
    verdict = bare("check", str(mine), "--exercise", "coalescing/fields")
    assert verdict.returncode == 1 and verdict.stdout.endswith("fields: not yet\n")
    solution = ROOT / "kernels" / "coalescing" / "exercises" / "fields_solution.cu"
    verdict = bare("check", str(solution), "--exercise", "coalescing/fields")
    assert verdict.returncode == 0 and verdict.stdout.endswith("fields: solved\n")


def test_a_kernel_is_emulated_without_the_extras(tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k(float* x) { x[threadIdx.x] += 1; }\n", encoding="utf-8")
    done = bare("emulate", str(tmp_path / "k.cu"), "--grid", "1", "--block", "32", "--arg", "x:float32:32:ones")
    assert (done.returncode, done.stderr) == (0, "")
    assert "x (float32, 32): 2 2 2 2 2 2 2 2 ... (24 more)" in done.stdout


def test_a_command_without_its_extra_says_what_to_install():
    done = bare("report")
    assert done.returncode == 2
    assert done.stderr == "climb report: error: it needs msgspec, which is not installed: pip install '.[book]'\n"


def test_python_m_climb_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "climb", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.startswith("usage: climb ")


def test_output_that_nobody_reads_to_its_end_is_no_error():
    command = f"{shlex.quote(sys.executable)} -m climb check --list | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_cells_of_a_chapters_exercises_are_printed(capsys):
    from climb.bench.exercise import cell
    from climb.bench.registry import load_exercises

    assert main(["check", "--cells", "coalescing"]) == 0
    printed = capsys.readouterr().out
    assert printed == "".join(f"# {one.name}\n{cell(one)}\n\n" for one in load_exercises("coalescing"))
    assert main(["check", "--cells", "nowhere"]) == 2


@pytest.mark.parametrize(
    "command", [["live"], ["record", "copy"], ["profile", "copy"], ["fuzz"], ["sanitize", "clean"]]
)
def test_a_command_that_needs_a_gpu_says_so(command, capsys, monkeypatch):
    from climb.bench import cuda

    monkeypatch.setattr(cuda, "backend", "emulator")
    assert main(command) == 1
    assert "needs an NVIDIA GPU and CuPy (pip install '.[gpu]')" in capsys.readouterr().err


def test_live_runs_make_for_one_chapter(monkeypatch):
    from climb.bench import cuda
    from climb.cli import live

    ran = []
    monkeypatch.setattr(cuda, "backend", "cupy")
    monkeypatch.setattr(
        live.subprocess, "run", lambda command, **_: ran.append(command) or types.SimpleNamespace(returncode=4)
    )
    assert main(["live", "coalescing"]) == 4 and ran == [["make", "live", "NOTEBOOK=coalescing"]]
    assert main(["live", "coalesing"]) == 2 and len(ran) == 1


def test_a_program_that_is_not_installed_is_named(monkeypatch, capsys):
    from climb.bench import cuda

    monkeypatch.setattr(cuda, "backend", "cupy")
    monkeypatch.setattr(common.shutil, "which", lambda name: None)
    assert main(["profile", "copy"]) == 1
    assert "it needs Nsight Compute (ncu), which comes with the CUDA toolkit" in capsys.readouterr().err


def test_a_ladder_that_needs_an_extra_says_what_to_install():
    body = (
        "from climb import load_ladder\n"
        "assert load_ladder('matmul').name == 'matmul'\n"
        "try: load_ladder('conv1d')\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = bare("--help", body=body)
    assert "ladder 'conv1d': it needs msgspec, which is not installed: pip install '.[book]'" in done.stdout
