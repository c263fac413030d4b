"""The registry of instructions: what patterns accept, what they refuse, and what they cost before they are used."""

from __future__ import annotations

import ast
import inspect
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import run_ptx
from tools.thorough import choose

from climb.emulator import UnsupportedInstruction, isa, load
from climb.emulator.isa import registry

FOLDER = Path(isa.__file__).parent


@pytest.fixture(scope="module")
def claims() -> dict[str, list[registry.Pattern]]:
    """Every opcode that a pattern expands to, and the patterns that do."""
    found: dict[str, list[registry.Pattern]] = {}
    for pattern in registry.patterns():
        for opcode in pattern.expand():
            found.setdefault(opcode, []).append(pattern)
    return found


def test_no_two_patterns_claim_one_opcode(claims: dict[str, list[registry.Pattern]]) -> None:
    shared = {opcode: [each.spellings for each in patterns] for opcode, patterns in claims.items() if len(patterns) > 1}
    assert shared == {}


def _some(claims: dict[str, list[registry.Pattern]]) -> Iterator[tuple[str, registry.Pattern]]:
    """The first opcode of each pattern and every fourth of all, with their patterns; with `--thorough` all."""
    seen: set[int] = set()
    for number, (opcode, (pattern, *_)) in enumerate(claims.items()):
        if number % choose(4, thorough=1) == 0 or id(pattern) not in seen:
            yield opcode, pattern
        seen.add(id(pattern))


def test_a_pattern_reads_each_of_its_opcodes_in_one_way(claims: dict[str, list[registry.Pattern]]) -> None:
    for opcode, pattern in _some(claims):
        first, *others = pattern.readings(opcode)
        assert all(each == first for each in others), opcode


def test_every_opcode_of_a_pattern_is_looked_up(claims: dict[str, list[registry.Pattern]]) -> None:
    for opcode, pattern in _some(claims):
        chosen = pattern.match(opcode)
        assert chosen is not None, opcode
        assert any("".join(chosen.get(part, part) for part in each) == opcode for each in pattern.spellings), opcode
        assert opcode.partition(".")[0] in pattern.mnemonics(), opcode


def test_every_rule_can_be_called_as_the_translator_does() -> None:
    for pattern in registry.patterns():
        rule = registry.lookup(min(pattern.expand()))
        if rule.emit is not None:
            inspect.signature(rule.emit).bind("emitter", "instruction")


def _mutations(opcode: str, modifiers: list[str], chosen: random.Random) -> Iterator[str]:
    """The opcode with a modifier missing, doubled, added or replaced, and with two modifiers swapped."""
    head, *parts = opcode.split(".")
    other = chosen.choice(modifiers)
    for at in range(len(parts)):
        yield ".".join([head, *parts[:at], *parts[at + 1 :]])
        yield ".".join([head, *parts[:at], parts[at], *parts[at:]])
        yield ".".join([head, *parts[:at], other, *parts[at:]])
        yield ".".join([head, *parts[:at], other, *parts[at + 1 :]])
        yield ".".join([head, *parts[:at], *reversed(parts[at : at + 2]), *parts[at + 2 :]])
    yield from (f"{opcode}.", f".{opcode}", f"{opcode} ", opcode.upper(), opcode[:-1], f"{opcode}.{other}")


def test_a_mutated_opcode_is_accepted_only_if_a_pattern_expands_to_it(
    claims: dict[str, list[registry.Pattern]],
) -> None:
    chosen, number = random.Random(12), choose(130, thorough=400)
    modifiers = sorted({part for opcode in claims for part in opcode.split(".")[1:]})
    refused = 0
    for opcode in chosen.sample(sorted(claims), number):
        for mutated in _mutations(opcode, modifiers, chosen):
            assert (registry.lookup(mutated) is not None) == (mutated in claims), mutated
            refused += mutated not in claims
    assert 2 * refused > 15 * number


@pytest.mark.parametrize(
    "opcode",
    [
        "add.wrap.s32",  # an unknown modifier
        "add.sat.sat.s32",  # a known one twice
        "mul.s32.lo",  # in the wrong order
        "mul.s32",  # one missing
        "add.s33",  # an unknown type
        "addd.s32",  # an unknown mnemonic
    ],
)
def test_unknown_modifier_is_refused_by_name_with_its_source_line(opcode: str) -> None:
    source = "__global__ void k() {\n    what_is_refused();\n}"
    program = f"""
        .version 8.8
        .target sm_90
        .address_size 64
        .visible .entry k() {{
            .reg .b32 %r<4>;
            .loc 1 1 1
            mov.u32 %r1, 1;
            .loc 1 2 5
            {opcode} %r2, %r1, %r1;
            ret;
        }}
        .file 1 "kernel.cu"
    """
    with pytest.raises(UnsupportedInstruction) as caught:
        load(program, {"kernel.cu": source}).kernel("k")
    assert f"{opcode} is not supported (in: {opcode} %r2, %r1, %r1" in caught.value.what
    assert (caught.value.where.line, caught.value.where.text) == (2, "what_is_refused();")


def test_importing_the_emulator_makes_no_rule() -> None:
    program = (
        "import climb.emulator\n"
        "from climb.emulator.isa import registry\n"
        "print(registry.lookup.cache_info().currsize, len(registry.patterns()) < 1000)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]


def test_a_second_lookup_returns_the_same_rule() -> None:
    assert registry.lookup("fma.rn.ftz.sat.f32") is registry.lookup("fma.rn.ftz.sat.f32")


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A copy of the registry that the test may change."""
    monkeypatch.setattr(registry, "_patterns", {name: list(each) for name, each in registry._patterns.items()})
    monkeypatch.setattr(registry, "_registered", set(registry._registered))
    monkeypatch.setattr(registry, "HELPERS", dict(registry.HELPERS))
    yield
    registry.lookup.cache_clear()


@pytest.mark.usefixtures("own_registry")
def test_an_instruction_registered_in_one_line_runs() -> None:
    registry.simple("triple{neg}.{t}", "{t}", ("{t}",), "3 * {0}", neg=("",), t=("s32", "u32"))
    (found,) = run_ptx("triple.u32 %o0, %i0;", [("u32", [1, 7, 2**31])], ["u32"])
    assert found.tolist() == [3, 21, 2**31]


@pytest.mark.usefixtures("own_registry")
def test_an_expression_that_depends_on_a_choice_is_a_function_of_it() -> None:
    registry.simple("half.{t}", "{t}", ("{t}",), lambda t: "{0} >> 1" if t == "u32" else "{0} / 2", t=("u32", "f32"))
    assert run_ptx("half.u32 %o0, %i0;", [("u32", [7])], ["u32"])[0].tolist() == [3]
    assert run_ptx("half.f32 %o0, %i0;", [("f32", [7.0])], ["f32"])[0].tolist() == [3.5]


@pytest.mark.usefixtures("own_registry")
def test_spellings_of_one_instruction_share_its_rule() -> None:
    rule = registry.Rule(None)
    registry.register("new{a}{b}.x", "new{b}{a}.x", rule=rule, a=("", ".a"), b=("", ".b"))
    assert {registry.lookup(opcode) for opcode in ("new.x", "new.a.x", "new.b.x", "new.a.b.x", "new.b.a.x")} == {rule}
    assert registry.lookup("new.a.a.x") is None


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize(
    ("opcode", "operands", "expression", "choices", "says"),
    [
        ("new.{t}", ("u32",), "{0}", {}, "the fields of new.{t} are not the choices (none)"),
        ("new.u32", ("u32",), "{0}", {"t": ("u32",)}, "the fields of new.u32 are not the choices t"),
        ("new.u32", ("{t}",), "{0}", {}, "new.u32: t is neither a choice nor an operand"),
        ("new.u32", ("u32",), "{0} + {1}", {}, "new.u32: 1 is neither a choice nor an operand"),
        ("new.{t}", ("u32",), "{0}", {"t": "u32"}, "the choice t is not a tuple of distinct values"),
        ("new.{t}", ("u32",), "{0}", {"t": ("u32", "u32")}, "the choice t is not a tuple of distinct values"),
        ("new.{t}", ("u32",), "{0}", {"t": ()}, "the choice t is not a tuple of distinct values"),
        ("prmt.b32", ("u32",), "{0}", {}, "two rules for prmt.b32"),
    ],
)
def test_a_wrong_declaration_is_refused_when_it_is_registered(
    opcode: str, operands: tuple[str, ...], expression: str, choices: dict, says: str
) -> None:
    before = len(registry.patterns())
    with pytest.raises(ValueError) as caught:
        registry.simple(opcode, "u32", operands, expression, **choices)
    assert says in str(caught.value)
    assert len(registry.patterns()) == before


@pytest.mark.usefixtures("own_registry")
def test_two_helpers_of_one_name_are_refused() -> None:
    def flush() -> None:
        pass

    with pytest.raises(ValueError, match="two helpers are named flush"):
        registry.helper(flush)


def test_isa_modules_import_each_other_in_one_direction_only() -> None:
    """No cycle, and no module imports the package, which imports them all."""
    imports = {path.stem: _imported(path) for path in FOLDER.glob("*.py") if path.stem != "__init__"}
    assert not [name for name, used in imports.items() if "" in used or "isa" in used]
    while imports:
        free = {name for name, used in imports.items() if not used & imports.keys()}
        assert free, f"modules in a cycle, or behind one: {sorted(imports)}"
        imports = {name: used for name, used in imports.items() if name not in free}


def _imported(path: Path) -> set[str]:
    """The modules of isa that a module imports, also inside functions; "" is the package itself."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found.add(node.module or "")
        elif isinstance(node, ast.ImportFrom) and node.level == 2 and (node.module or "").split(".")[0] == "isa":
            found.add("isa")
    return found
