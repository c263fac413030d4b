"""Arguments of ``climb emulate`` that a JSON file describes, and the same arguments of ``climb.emulator.run``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from climb.cli import main
from climb.emulator import Struct, Tensor, Texture, run

SOURCE = """
struct Inner { signed char c; double d; };
struct Parameters { int n; float scale[2]; const float* x; float* y; Inner in; };
__global__ void k(Parameters p, cudaTextureObject_t image, float* o) {
    int i = threadIdx.x;
    if (i < p.n) p.y[i] = p.scale[1] * p.x[i] + (float)p.in.d + p.in.c;
    o[i] = tex2D<float>(image, i + 0.5f, 1.5f);
}
"""
PARAMETERS = {
    "n": ["int32", 8], "scale": ["float32", [1, 2]], "x": "float32:8:range", "y": "@y.npy",
    "in": {"c": ["int8", 3], "d": ["float64", 0.5]},
}  # fmt: skip
GIVEN = ["emulate", "k.cu", "--grid", "1", "--block", "8", "--arg", "p:@p.json", "--arg", "t:@t.json",
         "--arg", "o:float32:8"]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE)
    Path("p.json").write_text(json.dumps({"struct": PARAMETERS}))
    Path("t.json").write_text(json.dumps({"texture": "float32:4x8:range"}))
    np.save("y.npy", np.full(8, 7, np.float32))
    return tmp_path


def test_structs_and_textures_come_from_json_files(capsys: pytest.CaptureFixture) -> None:
    assert main([*GIVEN, "--out", "p.y:out.npy", "--out", "o:o.npy"]) == 0
    assert np.load("out.npy").tolist() == [2.0 * i + 3.5 for i in range(8)]
    assert np.load("o.npy").tolist() == [8.0 + i for i in range(8)]
    assert "p.x (float32, 8): 0 1 2 3 4 5 6 7" in capsys.readouterr().out


def test_run_takes_structs_and_textures() -> None:
    x, y, o = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    inner = Struct({"c": np.int8(3), "d": np.float64(0.5)})
    scale = [np.float32(1), np.float32(2)]
    p = Struct({"n": np.int32(8), "scale": scale, "x": x, "y": y, "in": inner})
    image = Texture(np.arange(32, dtype=np.float32).reshape(4, 8, 1))
    result = run(SOURCE, grid=1, block=8, args=[p, image, o])
    assert y.tolist() == [2.0 * i + 3.5 for i in range(8)] and o.tolist() == [8.0 + i for i in range(8)]
    assert result.arrays["0.y"] is y and result.arrays[2] is o
    with pytest.raises(TypeError, match="argument 0 has 40 bytes, but the parameter has 48"):
        run(SOURCE, grid=1, block=8, args=[Struct({**p.members, "in": np.int32(1)}), image, o])
    with pytest.raises(TypeError, match=r"0\.n is a int; expected a NumPy scalar"):
        run(SOURCE, grid=1, block=8, args=[Struct({**p.members, "n": 8}), image, o])


def test_a_described_tensor_has_the_box_of_the_file() -> None:
    from climb.cli.emulation.arguments import argument

    Path("m.json").write_text(json.dumps({"tensor": "float32:16x32:ones", "box": [8, 32], "swizzle": 128}))
    name, found = argument("m:@m.json", np.random.default_rng(0))
    assert name == "m" and isinstance(found, Tensor)
    assert (found.array.shape, found.box, found.swizzle) == ((16, 32), [8, 32], 128)


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("p.json", "{", "p.json is not JSON"),
        ("p.json", "[1]", "p.json must be an object with one of the keys struct, texture, tensor"),
        ("p.json", {"struct": {}}, "a struct is an object of its members, in order"),
        ("p.json", {"struct": {"n": 8}}, 'the member n is 8; expected ["int32", 5]'),
        ("p.json", {"struct": {"n": ["int33", 8]}}, "the member n: 'int33' is not a NumPy dtype"),
        ("p.json", {"struct": {"n": ["int8", 800]}}, "the member n: "),
        ("p.json", {"struct": {"n": ["int32", "eight"]}}, "the member n: "),
        ("p.json", {"struct": {**PARAMETERS, "x": "float32"}}, "expected a number, or NAME:TYPE:SHAPE"),
        ("p.json", {"struct": {**PARAMETERS, "y": "@none.npy"}}, "no file none.npy"),
        ("p.json", {"struct": {"n": ["int32", 8]}}, "argument 0 has 4 bytes, but the parameter has 48"),
        ("t.json", {"texture": "float32:4x8", "filter": "linear"}, "t.json has the unknown key 'filter'"),
        ("t.json", {"texture": "float32:4x8", "filtering": "cubic"}, "unknown filtering or addressing mode"),
        ("t.json", {"texture": "float64:4x8"}, "textures of float64 are not supported"),
    ],
)
def test_bad_descriptions_are_named_in_one_line(
    file: str, text: object, says: str, capsys: pytest.CaptureFixture
) -> None:
    Path(file).write_text(text if isinstance(text, str) else json.dumps(text))
    assert main(GIVEN) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
