"""The access picture: it draws what the emulator's cost model counts, and the hardware's counts agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from tools.samples import BASE, LANES, access, texts

from climb.display.access_cost import GlobalPicture, global_picture, headline, pick, runs, shared_picture
from climb.display.figures import access_figure, alt_text
from climb.emulator.counters.cost_model import PERIOD, SHARED_MEASURES, atomic_sectors, sectors
from climb.emulator.simt.warp_layout import INACTIVE
from climb.validation import agreement
from climb.validation.agreement.cases import Case, cases


def test_coalesced_load_moves_four_sectors_without_waste():
    picture = global_picture(access(BASE + 4 * LANES))
    assert (picture.moved, picture.used, picture.fetched) == (4, 128, 128)
    assert headline(picture) == "4 sectors move, the least there is"


def test_load_off_by_one_float_moves_a_fifth_sector():
    picture = global_picture(access(BASE + 4 + 4 * LANES))
    assert (picture.moved, picture.used, picture.fetched) == (5, 128, 160)
    assert headline(picture) == "5 sectors move; 4 would do"


def test_column_moves_a_sector_for_each_lane():
    picture = global_picture(access(BASE + 4096 * LANES))
    assert (picture.moved, len(picture.lines), picture.fetched) == (32, 32, 1024)


def test_broadcast_word_belongs_to_all_lanes():
    picture = global_picture(access(np.full(32, BASE)))
    assert list(picture.words.values()) == [tuple(range(32))]
    assert "lanes 0-31" in texts(access_figure(access(np.full(32, BASE))))


def test_column_of_a_square_tile_takes_32_wavefronts_and_padding_takes_one():
    column = shared_picture(access(128 * LANES, kind="shared load"))
    padded = shared_picture(access(132 * LANES, kind="shared load"))
    assert (column.wavefronts, column.conflicts) == (32, 31)
    assert {bank for _, bank in column.served} == {0}
    assert (padded.wavefronts, padded.conflicts) == (1, 0)
    assert {bank for _, bank in padded.served} == set(range(32))


def test_16_byte_loads_that_neighbours_share_take_two_wavefronts_and_stores_four():
    """Pairs of lanes want the same 16 bytes: 16 lanes are served together, where stores go in quarters of a warp."""
    shared = 16 * (LANES // 2)
    assert shared_picture(access(shared, 16, "shared load")).wavefronts == 2
    assert shared_picture(access(shared, 16, "shared store")).wavefronts == 4


@pytest.mark.parametrize(("carried_out", "wavefronts"), [("native", 32), ("", 32), ("combined", 1), ("swapped", 64)])
def test_shared_atomics_of_one_address_are_drawn_as_shared_memory_does_them(carried_out, wavefronts):
    picture = shared_picture(access(np.zeros(32, np.int64), 4, "shared atomic", carried_out=carried_out))
    assert picture.wavefronts == wavefronts
    served = Counter(lane for lanes in picture.served.values() for lane in lanes)
    assert served == dict.fromkeys(range(32), 2 if carried_out == "swapped" else 1)


def test_global_atomics_of_one_address_move_its_sector_once_for_each_lane():
    one = access(np.full(32, BASE), 4, "global atomic")
    picture = global_picture(one)
    assert (picture.moved, picture.least, picture.turns, len(picture.lines)) == (32, 1, 32, 1)
    assert list(picture.words.values()) == [(lane,) for lane in range(32)]
    figure = access_figure(one)
    assert "32 sectors move; 1 would do" in texts(figure) and "in 32 turns" in alt_text(figure)


# The picture and the cost model.

KINDS = [
    ("global load", ""), ("global store", ""), ("global atomic", ""), ("shared load", ""), ("shared store", ""),
    *(("shared atomic", carried_out) for carried_out in ("native", "combined", "swapped")),
]  # fmt: skip
PATTERNS = 1000


def random_access(seed: int) -> SimpleNamespace:
    """A pattern with strides, broadcasts, neighbours that share, conflicts, idle lanes, and any start."""
    rng = np.random.default_rng(seed)
    width = int(rng.choice([1, 2, 4, 8, 16]))
    kind, carried_out = KINDS[rng.integers(len(KINDS))]
    units = (LANES >> rng.integers(0, 4)) * rng.choice([0, 1, 1, 2, 3, 8, 32, 33]) ^ rng.choice([0, 0, 5, 21])
    if rng.random() < 0.4:
        units = rng.integers(0, rng.choice([4, 40, 600]), 32)
    if rng.random() < 0.3:
        units = np.repeat(units[:16], 2)
    active = rng.random(32) < rng.choice([1.0, 1.0, 0.7, 0.2])
    active[rng.integers(32)] = True
    start = width * int(rng.integers(0, 64)) + (BASE if kind.startswith("global") else 0)
    return access(start + width * units.astype(np.int64), width, kind, active, carried_out)


def counted(one: SimpleNamespace) -> tuple[int, int]:
    """The cost model's counts for an access: (achieved, ideal)."""
    space, action = one.kind.split()
    measure, modulus = (atomic_sectors, PERIOD) if action == "atomic" else (sectors, 32)
    if space == "shared":
        measure, modulus = SHARED_MEASURES[one.carried_out or action], 4
    first = one.addresses[one.active][0]
    relative = np.where(one.active, one.addresses - first, INACTIVE).reshape(1, 32)
    achieved, ideal = measure(relative, np.array([first % modulus]), one.width)[0]
    return int(achieved), int(ideal)


def drawn(picture) -> tuple[int, int]:
    """The counts that a picture shows: sectors or wavefronts that have a cell, and the number that "would do"."""
    if isinstance(picture, GlobalPicture):
        return len(picture.sectors), picture.least
    return len({wavefront for wavefront, _ in picture.served}), picture.least


def test_picture_of_1000_random_patterns_shows_what_the_cost_model_counts():
    seen = Counter()
    for seed in range(PATTERNS):
        one = random_access(seed)
        is_global = one.kind.startswith("global")
        picture = global_picture(one) if is_global else shared_picture(one)
        cost = counted(one)
        assert drawn(picture) == cost, seed
        assert (picture.moved if is_global else picture.wavefronts) == cost[0], seed
        assert str(cost[0]) in headline(picture), seed
        seen[one.kind, one.carried_out, one.width] += 1
    assert len(seen) == 5 * len(KINDS) and min(seen.values()) >= 8


def test_every_lane_is_served_and_no_bank_serves_two_words_in_a_wavefront():
    for seed in range(PATTERNS):
        one = random_access(seed)
        if one.kind.startswith("global"):
            continue
        picture = shared_picture(one)
        wanted = {
            (lane, (int(one.addresses[lane]) + b) // 4) for lane in np.flatnonzero(one.active) for b in range(one.width)
        }
        got = {(lane, picture.words[cell]) for cell, lanes in picture.served.items() for lane in lanes}
        assert got == wanted, seed
        assert all(word % 32 == bank for (_, bank), word in picture.words.items()), seed


# The picture and the hardware.

#: Kernels of the measured patterns: the kind of the access in question, and how shared memory carries it out.
MEASURED = {
    "global_load": ("global load", ""), "global_store": ("global store", ""),
    "shared_load": ("shared load", ""), "shared_store": ("shared store", ""),
    "global_add": ("global atomic", ""), "global_add_returns": ("global atomic", ""),
    "global_max": ("global atomic", ""), "global_exchange": ("global atomic", ""),
    "global_compare": ("global atomic", ""),
    "shared_add": ("shared atomic", "native"), "shared_add_returns": ("shared atomic", "native"),
    "shared_max": ("shared atomic", "native"), "shared_exchange": ("shared atomic", "native"),
    "shared_compare": ("shared atomic", "swapped"), "shared_count": ("shared atomic", "combined"),
}  # fmt: skip
BYTES = {"unsigned char": 1, "unsigned short": 2, "float2": 8, "float4": 16, "unsigned long long": 8, "double": 8}


def warps_of(case: Case) -> Iterator[SimpleNamespace]:
    """The access of each warp of a measured pattern, from the formula in `patterns.cu`."""
    name, _, kind_of_value = case.kernel.removesuffix(">").partition("<")
    kind, carried_out = MEASURED[name]
    width = BYTES.get(kind_of_value, 4)
    shape = next(arg for arg in case.args if isinstance(arg, np.void))
    step, flip, shift, mask, offset, take, taken = np.array([shape]).view(np.int32).tolist()
    active = (LANES & take) == taken
    for block in range(case.grid[0]):
        for warp in range(case.block[0] // 32):
            thread = 32 * warp + LANES + (block * case.block[0] if kind.startswith("global") else 0)
            element = (((thread * step ^ flip) >> shift) & mask) + offset
            base = BASE if kind.startswith("global") else 0
            yield access(base + width * element, width, kind, active, carried_out)


def measured_patterns() -> list[tuple[Case, tuple[int, ...]]]:
    """The patterns of one access, with what Nsight Compute counted of it: sectors, or wavefronts."""
    known = {case.label: case for case in cases()}
    found = []
    for point in agreement.record().patterns:
        case = known[point["label"]]
        name = case.kernel.partition("<")[0]
        # Shared memory adds no floats and no 64-bit integers: ptxas makes a loop, and the count is of all its rounds.
        if name not in MEASURED or re.fullmatch(r"shared_add<(float|unsigned long long)>", case.kernel):
            continue
        kind = MEASURED[name][0]
        quantity = "sectors" if kind.startswith("global") else "wavefronts"
        counts = (agreement.QUANTITIES[kind, quantity][-1].of(run) for run in point["counts"])
        found.append((case, tuple(counts)))
    return found


def test_picture_shows_what_the_hardware_counted():
    patterns = measured_patterns()
    assert len(patterns) >= 700
    for case, counts in patterns:
        pictures = [
            (global_picture if one.kind.startswith("global") else shared_picture)(one)
            for one in warps_of(case)
            if one.active.any()
        ]
        total = sum(drawn(picture)[0] for picture in pictures)
        assert counts == (total,) * len(counts), case.label


# The figure.


def test_access_figure_says_its_cost_and_its_waste():
    figure = access_figure(access(BASE + 128 * LANES))
    assert "32 sectors move; 4 would do" in texts(figure)
    assert "896 bytes moved for nothing" in texts(figure)
    assert "Global load of source, 4 bytes a lane" in texts(figure)
    assert "896 bytes move unused" in alt_text(figure)


def test_two_accesses_stand_below_each_other_with_their_titles():
    column, padded = (access(step * LANES, kind="shared load") for step in (128, 132))
    figure = access_figure(column, padded, titles=("tiled", "padded"))
    shown = texts(figure)
    assert shown.index("tiled") < shown.index("32 wavefronts in a row; 1 would do") < shown.index("padded")
    assert "1 wavefront, the least there is" in shown
    heights = [access_figure(one).get_figheight() for one in (column, padded)]
    assert figure.get_figheight() == pytest.approx(sum(heights))


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (access(BASE + 4 * LANES, kind="local load"), "global and shared"),
        (access(BASE + 4 * LANES[:16], active=np.ones(16, bool)), "32 addresses"),
        (access(BASE + 4 * LANES, active=np.zeros(32, bool)), "no lane is active"),
        (access(BASE + 4 * LANES, width=3), "width 3"),
    ],
)
def test_malformed_access_is_refused(one, message):
    with pytest.raises(ValueError, match=message):
        access_figure(one)


def test_titles_must_be_as_many_as_accesses():
    with pytest.raises(ValueError, match=r"1 access\(es\) but 2 title"):
        access_figure(access(BASE + 4 * LANES), titles=("a", "b"))


def test_pick_finds_by_kind_line_and_allocation_or_lists_the_accesses():
    load, store = access(BASE + 4 * LANES), access(BASE + 4 * LANES, kind="global store")
    trace = SimpleNamespace(accesses=[load, store, store])
    assert pick(trace, "global load", line=7, of="source") is load
    assert pick(trace, "global store", 1) is store
    with pytest.raises(ValueError, match="global load of source in line 7; global store of source in line 7"):
        pick(trace, "shared load")
    with pytest.raises(ValueError, match="none is number 2"):
        pick(trace, "global store", 2)


def test_texts_of_an_access_picture_stay_within_the_figure():
    wide = access_figure(access(BASE + 16 * 5 * LANES, 16), access(128 * LANES, kind="shared load"))
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(wide).get_renderer()
    width, height = wide.bbox.size
    for text in wide.axes[0].texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height, text.get_text()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [((), []), ((5,), [(5, 1)]), ((3, 1, 2), [(1, 3)]), ({9, 0, 4, 1, 8}, [(0, 2), (4, 1), (8, 2)])],
)
def test_neighbouring_columns_are_drawn_as_one_box_and_others_apart(columns, expected):
    assert runs(columns) == expected
