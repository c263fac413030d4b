"""Translations kept on disk: a kept kernel runs as the translated one did, wherever its module lies."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest

from climb.emulator import BarrierDivergence, DeviceMemory, UnsupportedInstruction, load
from climb.emulator.execution import module
from climb.emulator.execution.kernel import Kernel
from climb.emulator.ptx.listing import Listing
from climb.emulator.translation import cache as translations
from climb.toolchain import cache, compile_cuda

SOURCE = r"""
__constant__ float weights[4] = {1, 2, 3, 4};
__device__ float bias[2] = {10, 20};
__device__ float* table[2] = {bias, bias + 1};
__device__ float twice(float v) { return 2 * v; }
__device__ float half_of(float v) { return v / 2; }
extern "C" __global__ void mix(float* out, int which)
{
    float (*chosen)(float) = which + threadIdx.x & 1 ? twice : half_of;
    bias[threadIdx.x & 1] = 30;  // every thread writes the same value
    out[threadIdx.x] = chosen(weights[threadIdx.x % 4]) + *table[which] + weights[2];
}
"""
UNKNOWN = ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n unknown.u32 %r1;\n}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder for what is kept."""
    monkeypatch.setattr(cache, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def compiled():
    return compile_cuda(SOURCE, filename="mix.cu")


def launch(compiled, sources=None):
    """The output, the counters, and the module's addresses of a launch in a module that is loaded anew."""
    loaded = load(compiled.ptx, compiled.sources if sources is None else sources)
    memory = DeviceMemory()
    out = memory.allocate(4 * 8)
    counters = loaded.kernel("mix").launch(
        1, 8, [struct.pack("<Q", out.address), struct.pack("<i", 1)], memory=memory, checks=()
    )
    return out.data.view(np.float32).tolist(), counters, loaded


def forbid(monkeypatch):
    """Let nothing be parsed or translated from here on."""

    def refuse(*_):
        raise AssertionError("translated again")

    monkeypatch.setattr(module, "translate", refuse)
    monkeypatch.setattr(module.ptx, "parse", refuse)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_kept_kernel_runs_at_other_addresses_without_parsing(compiled, monkeypatch):
    first = launch(compiled)
    assert first[0] == [30 + 3 + f * w for f, w in zip([2, 0.5] * 4, [1, 2, 3, 4] * 2, strict=True)]
    forbid(monkeypatch)
    second = launch(compiled)
    assert second[0] == first[0] and second[1] == first[1]
    addresses = [[one.address for one in loaded.symbols.values()] for *_, loaded in (first, second)]
    assert not set(addresses[0]) & set(addresses[1])
    written = second[2].symbol("bias").data.view(np.float32)
    assert written.tolist() == [30, 30]


@pytest.mark.parametrize("at", [0, 40, -1], ids=["version", "digest", "contents"])
def test_damaged_or_foreign_file_is_made_again(compiled, folder, monkeypatch, at):
    first = launch(compiled)
    for path in files(folder):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)
    assert launch(compiled)[:2] == first[:2]
    forbid(monkeypatch)
    assert launch(compiled)[:2] == first[:2]


def test_changed_emulator_translates_again_in_the_same_files(compiled, folder, monkeypatch):
    launch(compiled)
    before = files(folder)
    monkeypatch.setattr(translations, "version", lambda: b"\1" * 32)
    monkeypatch.setattr(module, "translate", None)
    with pytest.raises(TypeError):
        launch(compiled)
    assert files(folder) == before


def test_dtypes_of_a_kept_kernel_are_those_that_numpy_compares_by_identity(compiled):
    first, kept_one = (load(compiled.ptx, compiled.sources).kernel("mix").code for _ in range(2))
    assert kept_one.sites[0] is not first.sites[0]
    for site in kept_one.sites:
        assert site.element is np.dtype(site.element.str)


def test_source_lines_belong_to_the_translation(compiled):
    launch(compiled)
    changed = {name: text.replace("// every", "// each") for name, text in compiled.sources.items()}
    sites = launch(compiled, changed)[2].kernel("mix").code.sites
    assert any("// each thread" in site.text for site in sites)


def test_unsupported_instruction_is_refused_each_time(folder):
    for _ in range(2):
        with pytest.raises(UnsupportedInstruction):
            load(UNKNOWN).kernel("k")
    assert len(files(folder)) == 1  # the module's outline


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "x = 1\n", "c.py": "y = 2\n"},
        {"a.py": "x = 1\ny = 2\n", "b.py": ""},
        {"a.py": "x = 1\n", "b.py": "y = 3\n"},
    ],
)
def test_another_name_and_lines_that_move_or_change_are_another_version(tmp_path, monkeypatch, files) -> None:
    def version(name: str, files: dict[str, str]) -> bytes:
        (tmp_path / name / "translation").mkdir(parents=True)
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
        monkeypatch.setattr(translations, "__file__", str(tmp_path / name / "translation" / "cache.py"))
        return translations.version.__wrapped__()

    here = {"a.py": "x = 1\n", "b.py": "y = 2\n"}
    assert version("here", here) == version("a copy", here) != version("there", files)


def test_without_a_folder_nothing_is_kept(compiled, monkeypatch):
    monkeypatch.setattr(cache, "FOLDER", None)
    assert launch(compiled)[:2] == launch(compiled)[:2]


def test_a_short_launch_leaves_the_listing_packed_and_an_error_unpacks_it(monkeypatch):
    """Barriers, shuffles and the counters need no instruction but the first of a block."""
    source = r"""extern "C" __global__ void k(int* o, int last) {
    __shared__ int s[32];
    s[threadIdx.x] = __shfl_xor_sync(~0u, threadIdx.x, 1);
    if (threadIdx.x <= last) __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}"""
    made, restored, restore = compile_cuda(source, filename="k.cu"), [], Listing.restore
    monkeypatch.setattr(Listing, "restore", lambda self: (restored.append(self), restore(self)))

    def run(last: int) -> Kernel:
        kernel, memory = load(made.ptx, made.sources).kernel("k"), DeviceMemory()
        args = [struct.pack("<Q", memory.allocate(128).address), struct.pack("<i", last)]
        assert kernel.launch(1, 32, args, memory=memory).warp_instructions > 9
        return kernel

    kernel = run(32)
    assert not restored
    lines = Counter((one.location.file, one.location.line) for one in kernel.code.blocks[0].instructions)
    branch = kernel.code.blocks[0].branch
    lines.update([(branch.location.file, branch.location.line)] if branch else [])
    assert len(restored) == 1 and lines == kernel.code.blocks[0].lines
    with pytest.raises(BarrierDivergence, match="9 of 32 threads"):
        run(8)


def test_no_launch_can_change_a_constant_of_generated_code(compiled, monkeypatch):
    linked = []
    link = module.link
    monkeypatch.setattr(module, "link", lambda *given: linked.append(link(*given)) or linked[-1])
    launch(compiled)
    names = linked[0].code.functions[0].__globals__
    constants = [value for value in names.values() if isinstance(value, np.ndarray)]
    assert len(constants) > 3 and not any(value.flags.writeable for value in constants)
