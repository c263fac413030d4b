"""The command line: ``climb COMMAND ...``, and ``python -m climb COMMAND ...``, which is the same.

``COMMANDS`` names the module of each command. Such a module has ``add_arguments(parser)`` and ``run(args)``, which
returns the exit status, and is imported only when its command is given: ``climb --help`` needs the standard library
alone. A new command is one line in ``COMMANDS`` and one module.

Exit status: 0, the command succeeded; 1, it ran and found or met a fault; 2, the command line is wrong, or a package
that the command needs is not installed; 130, it was interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from climb.cli.errors import Unavailable, UsageError
from climb.extras import how_to_install

#: Each command with its module and the line that ``climb --help`` prints.
COMMANDS: dict[str, tuple[str, str]] = {
    "emulate": ("climb.cli.emulate", "run a kernel of a .cu file on the emulator; needs no GPU"),
    "check": ("climb.cli.check", "check your solution of an exercise; needs no GPU"),
    "report": ("climb.cli.report", "print the table of all records, or write it into README.md"),
    "compare": ("climb.cli.compare", "compare the records of two GPUs, or of two folders"),
    "address": ("climb.cli.address", "write the repository's address into the chapters"),
    "figures": ("climb.cli.figures", "draw the pictures of README.md and the front page"),
    "speed": ("climb.cli.speed", "measure how fast the emulator runs"),
    "live": ("climb.cli.live", "execute chapters on your GPU, measuring anew"),
    "record": ("climb.cli.record", "measure, count and profile ladders on this GPU"),
    "launch": ("climb.cli.launch", "run a program as several ranks, on a GPU each"),
    "record-shared": ("climb.cli.record_shared", "measure ladders over several GPUs; each rank runs it"),
    "merge": ("climb.cli.merge", "take over records that were made on another machine"),
    "profile": ("climb.cli.profile", "read the hardware's counters of ladders with Nsight Compute"),
    "transfers": ("climb.cli.transfers", "measure what moving a ladder's arrays costs"),
    "spans": ("climb.cli.spans", "record when each launch of a rung begins and ends"),
    "repeats": ("climb.cli.repeats", "count how often each rung gives which bits"),
    "occupancy": ("climb.cli.occupancy", "read occupancy with Nsight Compute"),
    "divergence": ("climb.cli.divergence", "count what diverging kernels execute with Nsight Compute"),
    "search": ("climb.cli.search", "search the tuning parameters of a ladder"),
    "agreement": ("climb.cli.agreement", "compare the emulator's counts with those of Nsight Compute"),
    "keep-code": ("climb.cli.keep_code", "keep the machine code that chapters show; needs no GPU"),
    "sanitize": ("climb.cli.sanitize", "run planted faults, or all rungs, under compute-sanitizer"),
    "fuzz": ("climb.cli.fuzz", "run random programs on this GPU and on the emulator"),
    "new": ("climb.cli.new", "make the stubs of a rung, a ladder, a chapter or an exercise"),
    "rehash": ("climb.cli.rehash", "convert the hashes of records that are fresh"),
    "mutate": ("climb.cli.mutate", "plant single mistakes and see which tests notice"),
}


class _Parser(argparse.ArgumentParser):
    """A parser that answers a wrong command line with one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` (by default the process's arguments) names. Returns the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    chosen = given[0] if given and given[0] in COMMANDS else None
    try:
        module = _module(chosen) if chosen else None
        args = _parser(chosen, module).parse_args(given)
        status = module.run(args) if module else 2
        sys.stdout.flush()
        return status
    except SystemExit as ended:  # argparse: 0 after --help, 2 for a wrong command line
        return int(ended.code or 0)
    except UsageError as error:
        print(f"climb {chosen}: error: {error}", file=sys.stderr)
        return 2
    except Unavailable as error:
        print(f"climb {chosen}: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if (missing := how_to_install(error)) is None:
            raise
        print(f"climb {chosen}: error: {missing}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader (e.g. head) closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(f"climb {chosen}: interrupted", file=sys.stderr)
        return 130


def _module(command: str) -> ModuleType:
    """Import the module of a command. Raises UsageError if this installation lacks it."""
    name, _ = COMMANDS[command]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError("this installation does not have that command") from None


def _parser(chosen: str | None, module: ModuleType | None) -> argparse.ArgumentParser:
    """Make the parser. Only the chosen command has its arguments: those of the others would import their modules."""
    listed = "\n".join(f"    {name:15}{summary}" for name, (_, summary) in COMMANDS.items())
    parser = _Parser(
        prog="climb",
        usage="climb COMMAND ...",
        description=f"The tools of Climb to the Roofline.\n\ncommands:\n{listed}",
        epilog="climb COMMAND --help says more about a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(prog="climb", metavar="COMMAND", help=argparse.SUPPRESS, required=True)
    for name, (_, summary) in COMMANDS.items():
        described = (module.__doc__ or summary) if name == chosen and module else summary
        command = commands.add_parser(name, description=described, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == chosen and module:
            module.add_arguments(command)
    return parser
