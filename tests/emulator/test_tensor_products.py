"""Products of tensor cores: every type and shape, bit by bit as an H200 has them.

`data/tensor_products.npz` and `data/descriptors.npz` hold what an H200 computed and read;
`climb fuzz --tensor --samples tests/emulator/data` makes both again.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from harness import pointer
from tools import thorough as thoroughness
from tools.thorough import thorough

from climb.bench import records
from climb.emulator import DeviceMemory, Module, load
from climb.emulator.runtime.tensor_cores import accumulation, descriptors
from climb.toolchain import compile_cuda
from climb.validation.schema import TensorRecord
from climb.validation.tensor_products import layouts, measuring
from climb.validation.tensor_products.comparing import Products, load_samples, modelled, run
from climb.validation.tensor_products.forms import BITS, FORMS
from climb.validation.tensor_products.measuring import ARCH, source

DATA = Path(__file__).parent / "data"
SAMPLES = {each.form.name: each for each in load_samples(DATA / "tensor_products.npz")}


@pytest.mark.parametrize("name", SAMPLES)
def test_sums_have_the_bits_of_an_h200(name: str) -> None:
    products = SAMPLES[name]
    bad = products.different().reshape(-1)
    assert not bad.any(), [
        (hex(products.modelled().ravel()[n]), hex(products.d.ravel()[n])) for n in np.flatnonzero(bad)
    ]


@pytest.mark.parametrize("gpu", sorted(path.name for path in records.RECORDS.iterdir() if path.is_dir()))
def test_no_sum_of_a_hopper_gpu_differs(gpu: str) -> None:
    path = measuring.record_path(gpu)
    if not path.exists():
        pytest.skip(f"climb fuzz --tensor has not run on {gpu}")
    found = records.load(path, TensorRecord)
    assert {name: one for name, one in found["forms"].items() if one["different"]} == {}
    assert sum(one["sums"] for one in found["forms"].values()) > 1_000_000


def test_samples_cover_every_kind_of_product() -> None:
    assert {each.by for each in FORMS.values()} == {SAMPLES[name].form.by for name in SAMPLES}
    assert len(SAMPLES) > 100


@pytest.mark.parametrize("width", [24, 26])
def test_samples_tell_another_width_of_the_aligned_addends(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulation.fused_sum, "__defaults__", (width,))
    with_halves = [SAMPLES[f"{name}_f16_f32"] for name in ("mma_k8", "mma_k16", "wmma_m16n16", "wmma_m8n32")]
    assert all(each.different().any() for each in with_halves)


# What an H200 computed: the form, the factors that are not zero by k, the accumulator and the sum.
RARE = {
    "addends below the least exponent are cut as if aligned to it": (
        "wgmma_n8_bf16_f32", {5: (0x7E, 0x345F), 13: (0x80FF, 0x3464)}, 0, 0x80000001,
    ),
    "the least exponent is -133 and not -134": (
        "wmma_m32n8_bf16_f32",
        {3: (0x84B0, 0xB43C), 5: (0xD8, 0xAD84), 9: (0x4D, 0x2E99), 13: (0x56, 0xAF71)}, 0, 0x205,
    ),
    "tf32 reaches the least exponent too": (
        "wgmma_n8_tf32_f32", {3: (0x80002000, 0x3CF726B2), 7: (0x80002000, 0xBD92985F)}, 0, 0x152,
    ),
    "a subnormal e4m3 is a normal float16": (
        "mma_k32_e4m3_e5m2_f32", {12: (0x81, 0x5A), 21: (0x83, 0x81)}, 0x3DA8FDF0, 0xBE95C081,
    ),
    "the second factor too": (
        "mma_k32_e5m2_e4m3_f32", {2: (0x80, 0x81), 3: (0x7B, 0x81), 6: (0x49, 0x82), 9: (0x81, 0x83), 13: (0x02, 0x45)},
        0x42E013F2, 0xB7000000,
    ),
    "a sum of negative zeros is +0 with halves in quads": (
        "mma_m8n8k4_row_col_f16_f32", {0: (0xD1F8, 0), 1: (0, 0xC615), 2: (0xC309, 0), 3: (0xF084, 0)}, 0x8000, 0,
    ),
    "and with a float32 accumulator": (
        "mma_m8n8k4_col_row_f32_f32", {0: (0xB67D, 0), 1: (0xBD4C, 0), 2: (0xAA51, 0), 3: (0xADD8, 0)}, 0x80000000, 0,
    ),
    "rounded down, a sum below the least number is +0 if it is positive": (
        "wmma_f64_rm", {3: (0xA25FFFFFFFFFFFFF, 0xA06FFFFFFFFFFFFF)}, 0x82DFFFFFFFFFFFFE, 0,
    ),
    "so is a sum of subnormal numbers": (
        "wmma_f64_rm",
        {0: (0xA8D43D5652FA4, 0x3E03095D54AE8F91), 1: (0x8001D4F6DC260352, 0xBE0B30A3143CE94F),
         2: (0x800513875E453B92, 0x3FD71075E3B8FEF9), 3: (0x25E7DFB0CC9E5, 0x4020AEF85C2AE7EF)}, 0x8011EEDFF98E3255, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RARE)
def test_rare_sums_have_the_bits_of_an_h200(name: str) -> None:
    form, factors, c, d = RARE[name]
    samples = SAMPLES[form]
    a, b = np.zeros_like(samples.a[:1]), np.zeros_like(samples.b[:1])
    for k, (x, y) in factors.items():
        a[0, 0, k], b[0, k, 0] = x, y
    found = modelled(samples.form, a, b, np.full((1, 1, 1), c, samples.c.dtype))
    assert hex(found[0, 0, 0]) == hex(d)


def _usual() -> set[str]:
    """The first form of each instruction and shape, and of each type of the sums; and what other tests launch."""
    names = {"mma_k8_f16_f32", "mma_m8k16_s8_u8"}
    for key in (lambda name: tuple(name.split("_")[:2]), lambda name: name.rsplit("_", 1)[-1]):
        names.update({key(name): name for name in reversed(FORMS)}.values())
    return names


#: The forms that `make test` compiles and launches.
USUAL = _usual()


@pytest.fixture(scope="module")
def module() -> Module:
    """The kernels of these forms, in one program."""
    forms = [form for name, form in FORMS.items() if thoroughness.enabled or name in USUAL]
    compiled = compile_cuda(source(forms), filename="products.cu", arch=ARCH)
    return load(compiled.ptx, compiled.sources)


def launcher(module: Module) -> Callable[..., np.ndarray]:
    """A launcher of kernels on the emulator, for `comparing.run`."""
    memory = DeviceMemory()

    def launch(name: str, grid: int, block: int, arrays: list[np.ndarray], count: int) -> np.ndarray:
        held = [memory.allocate(each.nbytes) for each in arrays]
        for array, each in zip(arrays, held, strict=True):
            each.data[:] = array.reshape(-1).view(np.uint8)
        packed = [*map(pointer, held), np.int32(count).tobytes()]
        shared = layouts.SHARED if name.startswith("layout_") else 0
        module.kernel(name).launch(grid, block, packed, memory=memory, shared_bytes=shared)
        return held[-1].data.view(arrays[-1].dtype).reshape(arrays[-1].shape)

    return launch


@pytest.mark.parametrize("name", [name if name in USUAL else thorough(name) for name in FORMS])
def test_kernels_multiply_the_matrices_in_their_registers(name: str, module: Module) -> None:
    products: Products = run(FORMS[name], launcher(module), 4, np.random.default_rng(3))
    assert not products.different().any()


def fused(products: list[tuple[Fraction, int]], total: tuple[Fraction, int], width: int) -> Fraction:
    """The sum of addends, each with the exponent of its significand, cut `width` places below the largest one."""
    top = max([-133, *(exponent for value, exponent in [*products, total] if value)])
    unit = Fraction(2) ** (top - width)
    return sum(int(value / unit) for value, _ in [*products, total]) * unit  # int() truncates towards zero


def float_parts(bits: int, exponent_bits: int, fraction_bits: int) -> tuple[Fraction, int]:
    """A finite code as its value and the exponent of its significand."""
    field, fraction = bits >> fraction_bits & (1 << exponent_bits) - 1, bits & (1 << fraction_bits) - 1
    exponent = max(field, 1) - (1 << exponent_bits - 1) + 1
    significand = fraction + (1 << fraction_bits if field else 0)
    sign = -1 if bits >> exponent_bits + fraction_bits else 1
    return sign * significand * Fraction(2) ** (exponent - fraction_bits), exponent


@pytest.mark.parametrize("name", ["mma_k16_f16_f32", "mma_k16_bf16_f32", "wgmma_n8_f16_f32"])
def test_sums_equal_a_model_in_exact_fractions(name: str) -> None:
    samples, kinds = SAMPLES[name], {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23)}
    kind = kinds[samples.form.a]
    checked = 0
    for a, b, c, d in zip(samples.a[:, 0], samples.b[:, :, 0], samples.c.ravel(), samples.d.ravel(), strict=True):
        specials = [int(x) >> kind[1] & (1 << kind[0]) - 1 == (1 << kind[0]) - 1 for x in (*a, *b)]
        if any(specials) or int(d) >> 23 & 255 == 255:
            continue
        factors = [(float_parts(int(x), *kind), float_parts(int(y), *kind)) for x, y in zip(a, b, strict=True)]
        products = [(x * y, e + f) for (x, e), (y, f) in factors]
        total = fused(products, float_parts(int(c), 8, 23), 25)
        value, _ = float_parts(int(d), 8, 23)
        step = Fraction(2) ** (max(int(d) >> 23 & 255, 1) - 127 - 23)
        assert abs(value) <= abs(total) < abs(value) + step  # rounded towards zero
        assert value * total >= 0
        checked += 1
    assert checked > 20


def test_descriptors_name_the_bytes_that_an_h200_reads() -> None:
    with np.load(DATA / "descriptors.npz") as saved:
        start, leading, stride, base, swizzle = saved["cases"].astype(np.int64).T
        found = descriptors.Descriptor(start, leading, stride, base, np.array(descriptors.SWIZZLES)[swizzle])
        for name in saved.files:
            if name != "cases":
                layout = next(each for each in layouts.LAYOUTS if each.name == name)
                size = BITS[layout.kind] // 8
                mine = descriptors.pieces(found, layout.rows, layout.form.k, not layout.transposed, size)[:, :64]
                assert (mine == saved[name]).all(), name


@pytest.mark.parametrize("layout", layouts.LAYOUTS, ids=lambda layout: layout.name)
def test_kernels_find_out_what_a_descriptor_reads(layout: layouts.Layout, module: Module) -> None:
    which = layouts.cases()
    whole = [n for n in range(0, len(which), 11) if which[n, 3] == 0 and which[n, 0] % 128 in (0, 32)]
    chosen = [n for n in whole if which[n, 0] % 1024 < 128][:3]
    found = layouts.read(layout, launcher(module), which[chosen])
    with np.load(DATA / "descriptors.npz") as saved:
        assert (saved["cases"] == which).all()
        assert (found == saved[layout.name][chosen]).all()


def test_comparing_counts_and_saves_sums(module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring.layouts, "cases", lambda: np.array([(0, 128, 256, 0, 0)], np.int32))
    forms = [FORMS["mma_k8_f16_f32"], FORMS["mma_m8k16_s8_u8"]]
    found = measuring.compare(forms, launcher(module), 1024, 1, tmp_path)
    assert found == {each.name: {"sums": 1024, "different": 0} for each in forms}
    again = list(load_samples(tmp_path / "tensor_products.npz"))
    assert [each.form for each in again] == forms and not any(each.different().any() for each in again)
    monkeypatch.setattr(accumulation.fused_sum, "__defaults__", (23,))
    found = measuring.compare(forms, launcher(module), 1024, 1, None)
    assert found["mma_k8_f16_f32"]["different"] == 0  # the emulated kernel has changed with it
    assert any(each.different().any() for each in again)


def test_descriptors_are_decoded_field_by_field() -> None:
    word = np.array([0x1234 | 0x0ABC << 16 | 0x2345 << 32 | 5 << 49 | 2 << 62], np.uint64)
    found = descriptors.decode(word)
    assert [int(each[0]) for each in found] == [0x12340, 0xABC0, 0x23450, 5, 64]


def test_the_bits_above_the_start_address_are_14_to_31() -> None:
    ones = np.array([1 << 13 | 1 << 14 | 1 << 31 | 1 << 32, 1 << 15], np.uint64)
    assert descriptors.above_start(ones).tolist() == [1 << 17 | 1, 2]


@pytest.mark.parametrize(("swizzle", "repeats"), [(0, 1), (32, 2), (64, 4), (128, 8)])
def test_a_start_is_misplaced_by_its_line_of_the_pattern(swizzle: int, repeats: int) -> None:
    """The pattern of a swizzle repeats after ``repeats`` lines of 128 bytes; without a swizzle there is none."""
    line, base = np.arange(17), np.arange(17)[::-1] % 8
    none = np.zeros(17, np.int64)
    found = descriptors.Descriptor(128 * line + 112, none, none, base, np.full(17, swizzle))
    assert descriptors.misplaced(found).tolist() == [bool(each % repeats) for each in (line - base).tolist()]
