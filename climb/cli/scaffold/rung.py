"""``climb new rung``: a copy of the rung before it, in its place in the ladder, under another name."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from climb import paths
from climb.bench import identity
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.registry import UnknownLadder, ladder_names, load_ladder
from climb.cli.errors import UsageError
from climb.cli.scaffold import names, planted, python_source
from climb.cli.scaffold.changes import shown, tidy
from climb.distributed.registry import shared_ladder_names

#: A script for a new process, because this one has the old ladder loaded: it prints the kernels that the new rung
#: launches.
_KERNELS_LAUNCHED = """
import json, sys
from climb.bench.registry import load_ladder
rung = load_ladder(sys.argv[1])[sys.argv[2]]
assert rung.path.name == sys.argv[3]
sizes = [*rung.ladder.problem.headline, *rung.ladder.problem.check]
taken = [size for size in sizes if rung.rung.requires(size) is None]
print(json.dumps(sorted({launch.kernel for size in taken for launch in rung.launches(size)})))
"""


@dataclass(frozen=True)
class _Copy:
    """The rung to make, beside the one that it copies; ``kernels`` maps old names of kernels to new ones."""

    before: BoundRung
    name: str
    path: Path
    kernels: dict[str, str]

    @property
    def idea(self) -> str:
        return f"to be written; a copy of {self.before.name}"


def new_rung(text: str, after: str | None) -> None:
    """Make the rung ``LADDER/NAME`` behind the rung ``after`` (None: the last). Raises UsageError."""
    ladder_name, name = names.pair(text, "LADDER/NAME")
    if ladder_name in shared_ladder_names():
        raise UsageError(f"'{ladder_name}' is a ladder over several GPUs; ARCHITECTURE.md says how to add a rung to it")
    if ladder_name not in ladder_names():
        raise UsageError(f"no ladder '{ladder_name}'; the ladders are {', '.join(ladder_names())}")
    try:
        ladder = load_ladder(ladder_name)
    except UnknownLadder as error:
        raise UsageError(str(error)) from None
    if name in ladder.names:
        raise UsageError(f"{ladder.name} has a rung '{name}' already")
    if after is not None and after not in ladder.names:
        raise UsageError(f"{ladder.name} has no rung '{after}'; it has {', '.join(ladder.names)}")
    before = ladder[after or ladder.names[-1]]
    copy = _Copy(before, name, _path(ladder, before, name), _renamed_kernels(before, name))
    moves = _moves(ladder, before)
    _refuse_overwriting(copy, moves)
    mentions = _mentions(old for old, _ in moves)
    _write(copy, moves)
    registered = _register(copy)
    fault = planted.by_hand(ladder.name, name)
    if registered:
        fault = planted.copy_faults(ladder, before.name, name, copy.path.read_text(encoding="utf-8"))
    _say_next(copy, registered, fault, mentions)


def _path(ladder: Ladder, before: BoundRung, name: str) -> Path:
    return ladder.folder / f"{ladder.names.index(before.name) + 2:02d}_{name}.cu"


def _renamed_kernels(before: BoundRung, name: str) -> dict[str, str]:
    """Return the kernels in the file of the rung before, with their names in the copy."""
    word = re.compile(rf"(?<![a-zA-Z0-9]){re.escape(before.name)}(?![a-zA-Z0-9])")
    return {old: word.sub(name, old) for old in identity.kernels_of(identity.tokens(before.source))}


def _moves(ladder: Ladder, before: BoundRung) -> list[tuple[Path, Path]]:
    """Return the files of later rungs, last first, with the names that one more rung gives them."""
    found = []
    for position in range(len(ladder.names) - 1, ladder.names.index(before.name), -1):
        rung = ladder[ladder.names[position]]
        if not rung.rung.source:
            found.append((rung.path, rung.path.with_name(f"{position + 2:02d}_{rung.name}.cu")))
    return found


def _refuse_overwriting(copy: _Copy, moves: list[tuple[Path, Path]]) -> None:
    leaving = {old for old, _ in moves}
    for path in (copy.path, *(new for _, new in moves)):
        if path.exists() and path not in leaving:
            raise UsageError(f"{shown(path)} exists already")


def _write(copy: _Copy, moves: list[tuple[Path, Path]]) -> None:
    """Rename the later rungs' files, update ``#include`` lines, and write the copy, its kernels not renamed yet."""
    text = with_stub_header(copy.before.source, copy.before.name)
    for old, new in moves:
        old.rename(new)
        print(f"renamed  {shown(old)} -> {new.name}")
    copy.path.write_text(text, encoding="utf-8")
    print(f"made     {shown(copy.path)}")
    for path in sorted(paths.KERNELS.rglob("*.cu*")):
        source = path.read_text(encoding="utf-8")
        followed = source
        for old, new in moves:
            followed = re.sub(
                rf'(#include "(?:[^"\n]*/)?){re.escape(old.name)}"',
                lambda match, old=old, new=new, path=path: (
                    f'{match[1]}{new.name}"' if _included(path, match[1], old) else match[0]
                ),
                followed,
            )
        if followed != source:
            path.write_text(followed, encoding="utf-8")
            print(f"changed  {shown(path)}")


def _included(path: Path, opening: str, old: Path) -> bool:
    """Return whether an ``#include`` of ``path`` that begins like this means the file ``old``."""
    return (path.parent / opening.removeprefix('#include "') / old.name).resolve() == old.resolve()


def with_stub_header(source: str, before: str) -> str:
    """Return a copy of a rung's source whose first lines say that it is a copy. It keeps the rung's requirements."""
    lines = source.splitlines()
    header = next((at for at, line in enumerate(lines) if not line.startswith("//")), len(lines))
    demands = next((at for at, line in enumerate(lines[:header]) if line.startswith("// Requires: ")), None)
    kept = lines[demands:] if demands is not None else ["// Requires: to be written.", *lines[header:]]
    stub = [f"// Idea: to be written; this is a copy of {before}.", "// From the rung before: nothing has changed yet."]
    return "\n".join([*stub, *kept]) + "\n"


def _register(copy: _Copy) -> bool:
    """Add the rung to its ladder's module, rename its kernels in the launches, and return whether that worked."""
    found = _find(copy)
    if found is None:
        return False
    module, text, call = found
    for kernels, name in ((True, True), (True, False), (False, False)):
        added = python_source.insert_after(text, call, _copied_call(text, call, copy, kernels, name))
        module.write_text(added, encoding="utf-8")
        launched = _launched(copy)
        source = copy.path.read_text(encoding="utf-8")
        renamed = rename(source, copy.kernels)
        for candidate in (renamed, source):
            if launched and launched <= _kernels(copy.path, candidate):
                copy.path.write_text(candidate, encoding="utf-8")
                tidy([module])
                print(f"changed  {shown(module)}")
                return True
    module.write_text(text, encoding="utf-8")
    return False


def _find(copy: _Copy) -> tuple[Path, str, ast.Call] | None:
    """Find the module of the ladder's folder, its text, and the call in a tuple or list there that makes the rung
    before."""
    found = []
    for module in sorted(copy.before.ladder.folder.glob("*.py")):
        text = module.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Tuple | ast.List):
                calls = [one for one in node.elts if isinstance(one, ast.Call) and _makes(one, copy.before.name)]
                found += [(module, text, call) for call in calls]
    return found[0] if len(found) == 1 else None


def _makes(call: ast.Call, name: str) -> bool:
    """Return whether a call may create the rung ``name``: ``Rung("padded", ...)`` or a helper that returns one."""
    given = _name_argument(call)
    makes_peer = isinstance(call.func, ast.Name) and call.func.id == "Peer"
    return given is not None and given.value == name and not makes_peer


def _name_argument(call: ast.Call) -> ast.Constant | None:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    first = call.args[0] if call.args else (named[0] if named else None)
    return first if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _copied_call(text: str, call: ast.Call, copy: _Copy, kernels: bool, name: bool) -> str:
    """Return the call's text with the new name and idea; with new names of kernels, and the rung's elsewhere, if
    asked."""
    given = _name_argument(call)
    ideas = [keyword.value for keyword in call.keywords if keyword.arg == "idea"] or call.args[1:2]
    idea = next((one for one in ideas if isinstance(one, ast.Constant) and isinstance(one.value, str)), None)
    pieces = {}
    for one in python_source.strings(call):
        value = one.value
        if one is given:
            value = copy.name
        elif one is idea:
            value = copy.idea
        elif name and value == copy.before.name:
            value = copy.name
        elif kernels:
            value = rename(value, copy.kernels)
        if value != one.value:
            pieces[python_source.span(text, one)] = python_source.quoted(value)
    start, end = python_source.span(text, call)
    shifted = {(a - start, b - start): piece for (a, b), piece in pieces.items()}
    return python_source.replace(text[start:end], shifted)


def rename(text: str, kernels: dict[str, str]) -> str:
    """Return the text with kernels renamed, whole words only."""
    for old, new in kernels.items():
        text = re.sub(rf"\b{re.escape(old)}\b", new, text)
    return text


def _launched(copy: _Copy) -> set[str]:
    """Return the kernels that the new rung launches, without template arguments; empty if the ladder does not load."""
    asked = [sys.executable, "-c", _KERNELS_LAUNCHED, copy.before.ladder.name, copy.name, copy.path.name]
    where = {**os.environ, "PYTHONPATH": str(paths.ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(asked, cwd=paths.ROOT, env=where, capture_output=True, text=True, check=False)
    if done.returncode:
        return set()
    return {kernel.partition("<")[0].strip() for kernel in json.loads(done.stdout)}


def _kernels(path: Path, source: str) -> set[str]:
    """Return the kernels of a source at ``path``, including those of its included files."""
    included = identity.expand_includes(path)
    elsewhere = set(identity.kernels_of(identity.tokens(included))) - set(
        identity.kernels_of(identity.tokens(path.read_text(encoding="utf-8")))
    )
    return elsewhere | set(identity.kernels_of(identity.tokens(source)))


def _mentions(files: Iterable[Path]) -> list[str]:
    """List where files that are about to move are named elsewhere: ``file:line``, in the book, the tests and the
    modules."""
    wanted = {f"{path.parent.name}/{path.name}" for path in files}
    if not wanted:
        return []
    found = []
    for folder, endings in (("book", ("ipynb", "md")), ("tests", ("py",)), ("kernels", ("py",)), ("climb", ("py",))):
        for path in sorted(one for ending in endings for one in (paths.ROOT / folder).rglob(f"*.{ending}")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if any(name in line for name in wanted):
                    found.append(f"{shown(path)}:{number}")
    return found


def _say_next(copy: _Copy, registered: bool, fault: str | None, mentions: list[str]) -> None:
    """Print the author's next steps."""
    ladder, folder = copy.before.ladder, copy.before.ladder.folder
    tests = f"tests/kernels/{folder.parent.name}/test_rungs.py"
    following = ladder.names[ladder.names.index(copy.before.name) + 1 :][:1]
    steps = []
    if not registered:
        steps.append(
            f"{shown(folder / '__init__.py')} has no single call that makes {copy.before.name}. Add the rung to "
            f"`rungs`, behind {copy.before.name}:\n"
            f'        Rung("{copy.name}", "the idea in a few words", launches)\n'
            f"   where launches(size) gives the launches of a kernel of {copy.path.name}, as those of its neighbours do"
        )
    steps += [
        f"change {shown(copy.path)}: the code, then the Idea and the difference in its first lines",
        f"change its idea and, where it differs, its launch in {shown(folder)}/",
    ]
    if following:
        steps.append(f"the rung {following[0]} comes after it now: say in its file what changes from {copy.name}")
    if fault:
        steps.append(f"add a fault that the tests must find to PLANTED in {tests}:\n        {fault}")
    else:
        steps.append(f"change the planted fault of {copy.name} in {tests} to a mistake of your code")
    by_hand = [one for one in mentions if not one.startswith("book/")]
    if by_hand:
        steps.append("change these lines, which name a file that was renumbered: " + ", ".join(by_hand))
    if shown_in := [one for one in mentions if one.startswith("book/")]:
        steps.append(
            "make run renews chapters, whose outputs name such a file; change it in text: " + ", ".join(shown_in)
        )
    steps += [
        f".venv/bin/python -m pytest --thorough {tests}\n"
        f"   (until the code differs from {copy.before.name}'s, test_no_two_rungs_are_the_same_program fails: "
        "two rungs are one program)",
        f"show it in book/{names.page(folder.parent.name)}.ipynb, without times until it is recorded; "
        f"make run NOTEBOOK={names.page(folder.parent.name)}",
        "make report and make run NOTEBOOK=ladders list the rung as pending",
        f"with a GPU: make record LADDER={ladder.name}",
    ]
    print("\nNext:")
    for number, step in enumerate(steps, 1):
        print(f"{number}. {step}")
