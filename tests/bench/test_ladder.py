"""The one way to launch: names, neighbours, hashes, launches as text, workspaces, several launches."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import numpy as np
import pytest
from tiny_ladder import scale

from climb.bench import ladder, registry
from climb.bench.cuda import cp
from climb.bench.identity import expand_includes
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.problem import Launch

X = np.arange(64, dtype=np.float32)


@pytest.mark.parametrize("name", scale.ladder.names)
def test_a_rung_is_called_with_arrays(name):
    y = scale.ladder[name](cp.asarray(X))
    np.testing.assert_array_equal(cp.asnumpy(y), 2 * X + 1)


def test_out_is_used_and_returned():
    out = cp.asarray(np.full(64, np.nan, np.float32))
    assert scale.ladder["plain"](cp.asarray(X), out=out) is out
    np.testing.assert_array_equal(cp.asnumpy(out), 2 * X + 1)


def test_the_kernels_of_a_rung_are_compiled_together_and_once(monkeypatch):
    made, module = [], cp.RawModule
    monkeypatch.setattr(cp, "RawModule", lambda **given: made.append(given["name_expressions"]) or module(**given))
    rung = dataclasses.replace(scale.ladder)["twice"]  # a copy of the ladder: nothing is compiled yet
    for _ in range(2):
        np.testing.assert_array_equal(cp.asnumpy(rung(cp.asarray(X))), 2 * X + 1)
    assert made == [("doubled", "plus_one")]


def test_names_are_in_order_and_know_their_neighbour():
    assert [bound.name for bound in scale.ladder] == ["plain", "vector", "twice"]
    assert scale.ladder["plain"].previous is None
    assert scale.ladder["twice"].previous.name == "vector"


def test_unknown_rung_lists_the_known():
    with pytest.raises(KeyError, match="ladder scale has no rung 'padded'; it has plain, vector, twice"):
        scale.ladder["padded"]


def test_two_rungs_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two rungs are called"):
        Ladder(scale.problem, scale.FOLDER, (scale.plain, scale.plain))


def test_a_launch_reads_as_cuda():
    launch = Launch("tile<32, 8>", (3, 2), (32, 8), ("b", "a", np.int32(7)), shared_mem=4096)
    assert str(launch) == "tile<32, 8><<<dim3(3, 2), dim3(32, 8), 4096>>>(b, a, 7)"
    assert launch.as_json()["args"] == ["b", "a", "int32(7)"]


def test_includes_are_expanded_once():
    text = expand_includes(scale.FOLDER / "plain.cu")
    assert text.count("__device__ inline float affine") == 1 and "#include" not in text


def test_a_file_included_by_two_others_stands_once(tmp_path):
    (tmp_path / "a.cu").write_text('#include "b.cuh"\n#include "c.cuh"\nint a;\n')
    (tmp_path / "b.cuh").write_text('  #  include "c.cuh"\nint b;\n')
    (tmp_path / "c.cuh").write_text('#include "b.cuh"\nint c;\n')
    assert [line for line in expand_includes(tmp_path / "a.cu").splitlines() if line] == ["int c;", "int b;", "int a;"]


@pytest.fixture
def copied(tmp_path):
    """The ladder with its sources in a folder that a test may change."""
    for name in ("plain.cu", "vector.cu", "twice.cu", "affine.cuh"):
        (tmp_path / name).write_text((scale.FOLDER / name).read_text())
    return dataclasses.replace(scale.ladder, folder=tmp_path)


SIZE = {"n": 1024}


def test_the_hash_is_that_of_the_content_not_of_the_place(copied):
    assert copied["plain"].sha256(SIZE) == scale.ladder["plain"].sha256(SIZE)


@pytest.mark.parametrize("changed", ["plain.cu", "affine.cuh"])
def test_the_hash_covers_the_source_and_what_it_includes(copied, changed):
    before = copied["plain"].sha256(SIZE)
    path = copied.folder / changed
    path.write_text(path.read_text().replace("2.0f", "3.0f") + "\n__device__ int changed;\n")
    assert copied["plain"].sha256(SIZE) != before


@pytest.mark.parametrize(
    "change",
    [
        {"options": ("-DUNROLL=4",)},
        {"launches": lambda s: (Launch("plain", (1,), (32,), ("y", "x", np.int32(s["n"]))),)},
        {"launches": lambda s: (Launch("plain", (16,), (64,), ("y", "x", np.int64(s["n"]))),)},
        {"workspace": lambda s: {"t": ((4,), "float32")}},
    ],
)
def test_the_hash_covers_options_launch_and_workspace(change):
    other = Ladder(scale.problem, scale.FOLDER, (dataclasses.replace(scale.plain, **change),))
    assert other["plain"].sha256(SIZE) != scale.ladder["plain"].sha256(SIZE)


def test_inputs_are_the_same_for_the_same_seed():
    one, same, other = (scale.ladder.inputs(SIZE, seed)["x"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_unknown_ladder_lists_the_known():
    with pytest.raises(registry.UnknownLadder) as caught:
        registry.load_ladder("transpoze")
    for name in registry.ladder_names():
        assert name in str(caught.value)


def test_a_ladder_elsewhere_is_loaded_by_module():
    assert registry.load_ladder("tiny_ladder.scale") is scale.ladder


def test_a_folder_with_another_name_than_its_problem_is_refused(tmp_path, monkeypatch):
    for place, text in (
        ("chapter/scales", "from tiny_ladder.scale import ladder\n"),
        ("chapter/exercises", "ladder = None\n"),
        ("chapter/plain", "def ladder_of(): ...\n"),
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "__init__.py").write_text(text)
    monkeypatch.setattr(registry, "KERNELS", tmp_path)
    assert registry.ladder_names() == ("scales",)
    monkeypatch.setattr(registry.importlib, "import_module", lambda name: scale)
    with pytest.raises(ValueError, match="kernels/chapter/scales holds the ladder 'scale'"):
        registry.load_ladder("scales")


def test_every_ladder_of_the_book_loads():
    for name in registry.ladder_names():
        ladder = registry.load_ladder(name)
        assert ladder.rungs and ladder.problem.headline and ladder.problem.check


def test_scratch_arrays_live_as_long_as_the_function_that_launches(monkeypatch):
    gc.collect()
    gc.freeze()  # what is alive now need not be searched again
    # The last launch of this rung gets its scratch arrays through tensor maps, which do not own them.
    bound = registry.load_ladder("tgemm")["small_tiles"]
    last = BoundRung(
        bound.ladder, dataclasses.replace(bound.rung, launches=lambda size: bound.rung.launches(size)[-1:])
    )
    size = {"m": 4, "n": 8, "k": 4, "data": "normal"}
    arrays = {name: cp.asarray(value) for name, value in bound.ladder.inputs(size).items()}
    arrays["C"] = cp.empty((4, 8), dtype=np.float32)
    made, empty = [], cp.empty

    def remembered(*args, **kwargs):
        array = empty(*args, **kwargs)
        made.append(weakref.ref(array))
        return array

    monkeypatch.setattr(ladder.cp, "empty", remembered)
    launch = last.prepare(arrays, size)
    gc.collect()
    assert len(made) == len(bound.rung.workspace(size)) and all(each() is not None for each in made)
    del launch
    gc.collect()
    assert all(each() is None for each in made)
    gc.unfreeze()
