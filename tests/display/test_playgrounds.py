"""The playgrounds count as the emulator and the bench do, in Python and in JavaScript."""

from __future__ import annotations

import json
import random
import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from tools.javascript import PLAY, Scripts

from climb import count_kernel, playground
from climb.bench.roofline import limit_of
from climb.bench.units import significant, time_text
from climb.bench.work import Work
from climb.display.access_cost import global_picture, shared_picture
from climb.display.index_expression import ExpressionError
from climb.display.playground_data import gpus, multiprocessors, occupancy_rules, playground_data, presets, script
from climb.display.playgrounds import (
    access,
    banks_access,
    percent,
    prefixed,
    say_banks,
    say_occupancy,
    say_roofline,
    say_sectors,
)
from climb.toolchain.occupancy import MULTIPROCESSORS, CannotLaunch, occupancy_of

PATTERNS = 1000
#: Index expressions that a reader may try; each shape of access is among them.
INDICES = ["lane", "lane * 2", "lane * 32", "31 - lane", "lane ^ 5", "lane / 4", "lane % 8 * 16", "0",
           "lane * lane % 61", "threadIdx.y * 64 + threadIdx.x", "lane < 16 ? lane : 1024 + lane",
           "max(lane, 7) * 3", "lane << 5 | 1"]  # fmt: skip
CONDITIONS = ["lane < 32", "lane % 2", "0", "lane < 5 || lane > 29", "0xf00ff00f >> lane & 1", "threadIdx.x == 3"]


@pytest.fixture(scope="module")
def scripts() -> Scripts:
    return Scripts(script())


def pattern(draw: random.Random, spread: int) -> tuple[list[int], list[bool]]:
    """Random indices, from dense to scattered, some shared by neighbours, and random active lanes (at least one)."""
    index = [draw.randrange(draw.choice((4, 40, spread))) for _ in range(32)]
    kind = draw.random()
    if kind < 0.3:
        step, start = draw.choice((1, 2, 3, 4, 8, 31, 32, 33)), draw.randrange(8)
        index = [start + step * lane for lane in range(32)]
    elif kind < 0.5:
        index = [index[lane & draw.choice((~1, ~2, ~3))] for lane in range(32)]
    elif kind < 0.6:
        bit = draw.choice((1, 2))
        index = [index[lane & ~bit] for lane in range(32)]
    share = draw.choice((0.2, 0.9, 1.0))
    active = [draw.random() < share for _ in range(32)]
    active[draw.randrange(32)] = True
    return index, active


def test_sectors_equal_the_emulators_for_random_patterns(scripts: Scripts) -> None:
    draw = random.Random(1)
    accesses = []
    for _ in range(PATTERNS):
        width = draw.choice((1, 2, 4, 8, 16))
        index, active = pattern(draw, 5000)
        offset = draw.randrange(0, 128, width)
        accesses.append(access("global load", [i * width + offset for i in index], active, width))
    found = scripts.call(
        "said(RLPlay.sectors, RLPlay.saySectors)",
        [[a.addresses.tolist(), a.active.tolist(), a.width] for a in accesses],
    )
    for one, js in zip(accesses, found, strict=True):
        picture = global_picture(one)
        assert (len(js["sectors"]), js["least"], js["used"]) == (picture.moved, picture.least, picture.used)
        assert js["lines"] == list(picture.lines) and js["lanes"] == list(picture.lanes)
        assert {(s // 4, s % 4) for s in js["sectors"]} == {(line, s) for (_, line), s in picture.sectors}
        assert js["say"] == say_sectors(picture)
    assert any(p["used"] == p["moved"] for p in found) and any(len(p["sectors"]) == 32 for p in found)


def test_wavefronts_equal_the_emulators_for_random_patterns(scripts: Scripts) -> None:
    draw = random.Random(2)
    accesses = []
    for _ in range(PATTERNS):
        width = draw.choice((1, 2, 4, 8, 16))
        index, active = pattern(draw, 2000)
        kind = draw.choice(("load", "store"))
        accesses.append((access(f"shared {kind}", [i * width for i in index], active, width), kind))
    found = scripts.call(
        "said(RLPlay.banks, RLPlay.sayBanks)",
        [[a.addresses.tolist(), a.active.tolist(), a.width, kind] for a, kind in accesses],
    )
    for (one, _), js in zip(accesses, found, strict=True):
        picture = shared_picture(one)
        assert (js["wavefronts"], js["least"]) == (picture.wavefronts, picture.least)
        assert {(w["wavefront"], w["bank"]): tuple(w["lanes"]) for w in js["words"]} == picture.served
        assert {(w["wavefront"], w["bank"]): w["number"] for w in js["words"]} == picture.words
        assert js["say"] == say_banks(picture)
    assert {p["parts"] for p in found} == {1, 2, 4}


def test_states_of_the_tile_give_the_same_access(scripts: Scripts) -> None:
    """Row and column expressions, padding and swizzle: the same addresses, or the same error."""
    draw = random.Random(3)
    states = []
    for _ in range(PATTERNS):
        states.append(
            {
                **{name: draw.choice(INDICES) for name in ("row", "column")},
                "index": draw.choice(["", *INDICES]),
                "width": draw.choice((4, 8, 16)),
                "columns": draw.choice((8, 32, 33, 64)),
                "pad": draw.choice((0, 1, 4)),
                "swizzle": draw.randrange(6),
                "access": draw.choice(("load", "store")),
                "active": draw.choice(CONDITIONS),
                "block": draw.choice((32, 16, 8)),
            }
        )
    states.append({**states[0], "index": "lane - 3"})
    for state, js in zip(states, scripts.call("RLPlay.computeBanks", [[s] for s in states]), strict=True):
        try:
            asked = banks_access(state)
        except ExpressionError as error:
            assert js == {"error": str(error)}
            continue
        assert [a if on else 0 for a, on in zip(js["addresses"], js["active"], strict=True)] == asked.addresses.tolist()
        assert js["active"] == asked.active.tolist()
        assert said(playground("banks", **state)) == js["say"]


def test_states_of_a_global_access_give_the_same_sentence(scripts: Scripts) -> None:
    draw = random.Random(4)
    states = []
    for _ in range(200):
        width = draw.choice((1, 2, 4, 8, 16))
        states.append({"index": draw.choice([*INDICES, "threadIdx.x - 1", "lane - 40"]), "width": width,
                       "offset": draw.randrange(0, 128, width), "active": draw.choice(CONDITIONS),
                       "block": draw.choice((32, 16, 8, 4))})  # fmt: skip
    for state, js in zip(states, scripts.call("RLPlay.computeSectors", [[s] for s in states]), strict=True):
        assert said(playground("sectors", **state)) == js["say"]


def test_occupancy_equals_the_benchs_for_random_kernels(scripts: Scripts) -> None:
    draw = random.Random(5)
    kernels = []
    for _ in range(PATTERNS):
        registers = draw.choice((draw.randint(0, 128), draw.choice((32, 33, 64, 128, 255, 256))))
        shared = draw.choice((0, draw.randint(0, 8192), 1024 * draw.randint(0, 100), draw.randint(0, 240_000)))
        threads = draw.choice((32 * draw.randint(1, 32), draw.randint(0, 1030)))
        kernels.append((registers, shared, threads, draw.choice(tuple(MULTIPROCESSORS))))
    limits, rules = multiprocessors(), occupancy_rules()
    found = scripts.call(
        "said(RLPlay.occupancy, RLPlay.sayOccupancy)",
        [[{"registers": r, "shared": s, "threads": t}, limits[arch], rules] for r, s, t, arch in kernels],
    )
    refused = 0
    for kernel, js in zip(kernels, found, strict=True):
        expected: Any
        try:
            expected = occupancy_of(*kernel)
        except CannotLaunch as error:
            expected = error
            refused += 1
            assert js["refused"] == str(error)
        else:
            assert js["limits"] == expected.limits and tuple(js["limitedBy"]) == expected.limited_by
            assert (js["blocks"], js["warps"], js["slots"]) == (
                expected.blocks,
                expected.warps,
                expected.multiprocessor.warps,
            )
            assert (js["perWarp"], js["blockShared"]) == (expected.registers_per_warp, expected.shared_per_block)
        assert js["say"] == say_occupancy(expected)
    assert 50 < refused < PATTERNS // 2


def test_roofline_equals_the_benchs_for_random_problems(scripts: Scripts) -> None:
    draw = random.Random(6)
    gpu = gpus()["nvidia-h200"]
    points = [
        (*(2 * int(10 ** draw.uniform(3, most)) for most in (15, 13)), draw.choice(("copy_gb_s", "read_gb_s")))
        for _ in range(PATTERNS)
    ]
    peak = gpu["ceilings"]["fma_tflop_s"]
    found = scripts.call(
        "((f, b, w, p, n) => said(RLPlay.roofline, (r) => RLPlay.sayRoofline(f, b, r, n))(f, b, w, p))",
        [[f, b, gpu["ceilings"][w], peak, gpu["name"]] for f, b, w in points],
    )
    for (flops, moved, name), js in zip(points, found, strict=True):
        written = 0 if name == "read_gb_s" else moved // 2
        work = Work(read=moved - written, written=written, fma=flops // 2)
        ceilings = {"copy_gb_s": gpu["ceilings"]["copy_gb_s"] / 1e9, "read_gb_s": gpu["ceilings"]["read_gb_s"] / 1e9}
        expected = limit_of(work, {**ceilings, "fma_tflop_s": peak / 1e12})
        assert js["bound"] == expected.bound
        assert js["seconds"] == pytest.approx(expected.seconds, rel=1e-12)
        assert js["say"] == say_roofline(flops, moved, gpu["ceilings"][name], peak, gpu["name"])
    assert {one["bound"] for one in found} == {"memory", "arithmetic"}


def test_numbers_are_written_alike(scripts: Scripts) -> None:
    draw = random.Random(7)
    values = [0.125, 1.125, 2.375, 1.0625, 0.9995, 999.5, 9.995, 1e-7, 12345.0, 10.05] + [
        10 ** draw.uniform(-12, 17) for _ in range(500)
    ]
    assert scripts.call("RLPlay.significant", [[v] for v in values]) == [significant(v) for v in values]
    assert scripts.call("RLPlay.timeText", [[v] for v in values]) == [time_text(v) for v in values]
    assert scripts.call("((v) => RLPlay.prefixed(v, 'B'))", [[v] for v in values]) == [prefixed(v, "B") for v in values]
    shares = [(0, 5), (5, 5), (1, 1024), (1023, 1024), (1, 8), (1, 200), (3, 8)]
    assert scripts.call("RLPlay.percent", [list(s) for s in shares]) == [percent(*s) for s in shares]
    assert [percent(*s) for s in shares[:5]] == ["0 %", "100 %", "less than 1 %", "more than 99 %", "13 %"]


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_sectors_equal_a_kernels_counters(width: int) -> None:
    """The indices of the playground in a kernel that loads: the emulator counts the same sectors."""
    types = {1: "char", 2: "short", 4: "float", 8: "float2", 16: "float4"}
    source = f"""
__global__ void probe(const {types[width]}* data, {types[width]}* target) {{
    const int lane = threadIdx.y * blockDim.x + threadIdx.x;
    if (ACTIVE) target[lane] = data[INDEX];
}}
"""
    arrays = [np.zeros(4096 * width, np.uint8), np.zeros(32 * width, np.uint8)]
    arrays = [array.view(np.float32) if width >= 4 else array for array in arrays]
    for index in INDICES:
        options = (f"-DINDEX={index}", "-DACTIVE=lane % 3 < 2")
        counted = count_kernel(source, "probe", (1,), (8, 4), arrays, options=options).total("global load").sectors
        text = said(playground("sectors", index=index, width=width, active="lane % 3 < 2", block=8))
        assert text.startswith(f"{counted} sector"), (index, text)


# The display function.


def said(shown: Any) -> str:
    """The sentence of a playground, the last line of its text."""
    return str(repr(shown).splitlines()[-1])


def test_playground_says_its_result_without_a_script() -> None:
    shown = playground("sectors", index="lane < 16 ? lane : 0", width=8)
    assert repr(shown) == (
        "if (lane < 32) value = data[lane < 16 ? lane : 0];  // 8 bytes a lane\n"
        "4 sectors on 1 line for 32 lanes, the fewest possible. All 128 bytes that move are used."
    )
    assert 'data-play="sectors"' in shown.html and 'data-index="lane &lt; 16 ? lane : 0"' in shown.html
    assert repr(shown).splitlines()[0] in unescape(shown.html) and said(shown) in shown.html


def test_preset_of_the_roofline_is_the_ladders_work() -> None:
    shown = playground("roofline", preset="sgemm")
    chosen = next(one for one in presets() if one["name"] == "sgemm")
    assert f'data-flops="{chosen["flops"]}"' in shown.html
    assert said(shown).startswith(f"{significant(chosen['flops'] / chosen['bytes'])} FLOP per byte, above the ridge")


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("warps", {}, "there is no playground 'warps'; there are sectors, banks, occupancy, roofline"),
        ("sectors", {"pad": 1}, "'sectors' has no pad; it has index, width"),
        ("sectors", {"width": 3}, "width is one of 1, 2, 4, 8, 16; got 3"),
        ("sectors", {"offset": 2}, "offset 2 is no multiple of the width 4"),
        ("sectors", {"index": "lane +"}, "expected a value, found the end, at character 7"),
        ("banks", {"swizzle": 6}, "swizzle is one of 0 to 5; got 6"),
        ("banks", {"row": "lane - 1"}, "lane 0 reaches element -32, outside shared memory"),
        ("occupancy", {"arch": "sm_70"}, "arch is one of sm_75"),
        ("roofline", {"preset": "nothing"}, "there is no preset 'nothing'; there are saxpy"),
        ("roofline", {"gpu": "abacus"}, "there are no records of 'abacus'"),
        ("roofline", {"flops": 0}, "flops and bytes are positive"),
    ],
)
def test_impossible_value_is_refused_by_name(kind: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        playground(kind, **values)


def test_no_limit_or_ceiling_is_typed_in_a_script() -> None:
    """The scripts take every limit and every ceiling from the data that the build writes."""
    data = playground_data()
    limits = [*(value for sm in data["sm"].values() for value in sm.values()), *data["rules"].values()]
    typed = {str(value) for value in limits if isinstance(value, int) and value > 1024}
    ceilings = [value for gpu in data["gpus"].values() for value in gpu["ceilings"].values()]
    typed |= {f"{value / scale:g}" for value in ceilings for scale in (1e9, 1e12)}
    for path in PLAY.glob("*.js"):
        assert not typed & set(re.findall(r"[\d.]+", path.read_text("utf-8"))), path.name


def test_short_numbers_of_the_script_are_the_numbers_of_the_data() -> None:
    data = script().removesuffix(";\n").split(".data = ", 1)[1]
    assert "00000" not in data and json.loads(data) == json.loads(json.dumps(playground_data()))


def test_menu_of_gpus_names_each_once() -> None:
    names = [gpu["name"] for gpu in gpus().values()]
    assert len(set(names)) == len(names) > 1
