"""Run a few PTX instructions, or a CUDA kernel, on the emulator, with plain values in and out."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from climb.emulator import Allocation, Counters, DeviceMemory, Kernel, Trace, load
from climb.toolchain import Compiled, compile_cuda

NUMPY = {
    "u8": "<u1", "s8": "<i1", "b8": "<u1", "u16": "<u2", "s16": "<i2", "b16": "<u2", "u32": "<u4", "s32": "<i4",
    "b32": "<u4", "u64": "<u8", "s64": "<i8", "b64": "<u8", "f32": "<f4", "f64": "<f8", "pred": "<u4",
}  # fmt: skip


def register_type(kind: str) -> str:
    """The type with which a register for such a value is declared."""
    bits = max(8 * np.dtype(NUMPY[kind]).itemsize, 16)
    return f"f{bits}" if kind[0] == "f" else f"b{bits}"


def ptx_of(body: str, inputs: Sequence[str], outputs: Sequence[str], declare: str = "") -> str:
    """A kernel in which each thread loads its inputs to %i0, %i1, ..., runs `body`, and stores %o0, %o1, ..."""
    kinds = [("i", k, kind) for k, kind in enumerate(inputs)] + [("o", k, kind) for k, kind in enumerate(outputs)]
    text = [".version 8.8", ".target sm_90", ".address_size 64", ".visible .entry k("]
    text.append(", ".join(f".param .u64 p{n}" for n in range(len(kinds))) + ") {")
    text += [".reg .b64 %a<99>;", ".reg .b32 %tid;", ".reg .pred %p<9>;", declare]
    text += [f".reg .{register_type(kind)} %{side}{k};" for side, k, kind in kinds]
    text += [f".reg .pred %q{n};" for n, (_, _, kind) in enumerate(kinds) if kind == "pred"]
    text += ["mov.u32 %tid, %tid.x;"]
    for n, (_, _, kind) in enumerate(kinds):
        size = np.dtype(NUMPY[kind]).itemsize
        text += [f"ld.param.u64 %a{n}, [p{n}];", f"mad.wide.u32 %a{n}, %tid, {size}, %a{n};"]
    for n, (side, k, kind) in enumerate(kinds):
        if side == "i":
            text.append(f"ld.global.{'u32' if kind == 'pred' else kind} %i{k}, [%a{n}];")
            if kind == "pred":
                text.append(f"setp.ne.u32 %q{n}, %i{k}, 0;")
    text.append(body)
    for n, (side, k, kind) in enumerate(kinds):
        if side == "o":
            if kind == "pred":
                text.append(f"selp.u32 %o{k}, 1, 0, %q{n};")
            text.append(f"st.global.{'u32' if kind == 'pred' else kind} [%a{n}], %o{k};")
    return "\n".join([*text, "ret;", "}"])


def run_ptx(
    body: str, inputs: Sequence[tuple[str, Sequence]], outputs: Sequence[str], declare: str = ""
) -> list[np.ndarray]:
    """Run `body` once for each position of the inputs, at most 1024 x 65535; return the outputs as arrays."""
    memory = DeviceMemory()
    count = len(inputs[0][1])
    threads = min(count, 1024)
    blocks = -(-count // threads)
    args, arrays = [], []
    for kind, values in inputs:
        array = np.zeros(blocks * threads, NUMPY[kind])
        array[:count] = np.asarray(values, NUMPY[kind])
        arrays.append(memory.allocate(array.nbytes))
        arrays[-1].data[:] = array.view(np.uint8)
    for kind in outputs:
        arrays.append(memory.allocate(blocks * threads * np.dtype(NUMPY[kind]).itemsize))
    kernel = load(ptx_of(body, [k for k, _ in inputs], outputs, declare)).kernel("k")
    size = [np.dtype(NUMPY[k]).itemsize for k in [*(k for k, _ in inputs), *outputs]]
    for block in range(blocks):
        args = [pointer(a, block * threads * s) for a, s in zip(arrays, size, strict=True)]
        kernel.launch(1, threads, args, memory=memory)
    return [a.data.view(NUMPY[kind])[:count].copy() for a, kind in zip(arrays[len(inputs) :], outputs, strict=True)]


def pointer(allocation: Allocation, offset: int = 0) -> bytes:
    """The kernel argument that passes the address of an allocation."""
    return struct.pack("<Q", allocation.address + offset)


class Device:
    """Device memory and the kernels of one CUDA source; arguments are NumPy arrays and scalars."""

    def __init__(
        self, source: str, names: Sequence[str] = (), options: Sequence[str] = (), arch: str = "sm_90"
    ) -> None:
        compiled = compile_cuda(source, filename="test.cu", options=options, name_expressions=names, arch=arch)
        self._load(compiled)

    @classmethod
    def of(cls, compiled: Compiled) -> Device:
        """A device with a source that is compiled already."""
        device = cls.__new__(cls)
        device._load(compiled)
        return device

    def _load(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.module = load(compiled.ptx, compiled.sources)
        self.memory = DeviceMemory()
        self.allocations: dict[int, tuple[np.ndarray, Allocation]] = {}

    def kernel(self, name: str) -> Kernel:
        return self.module.kernel(self.compiled.lowered(name))

    def upload(self, array: np.ndarray, name: str = "") -> Allocation:
        found = self.memory.allocate(array.nbytes, name)
        found.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return found

    def launch(
        self,
        name: str,
        grid: Sequence[int] | int,
        block: Sequence[int] | int,
        *args: object,
        shared: int = 0,
        trace: Trace | None = None,
        max_steps: int = 200_000,
        cooperative: bool = False,
    ) -> Counters:
        """Launch a kernel; afterwards every array argument holds the kernel's result."""
        packed, back = [], []
        for index, arg in enumerate(args):
            if isinstance(arg, np.ndarray):
                held = self.upload(arg, f"argument {index}")
                back.append((arg, held))
                packed.append(pointer(held))
            elif isinstance(arg, Allocation):
                packed.append(pointer(arg))
            elif isinstance(arg, np.generic):
                packed.append(arg.tobytes())
            elif isinstance(arg, float):
                packed.append(struct.pack("<f", arg))
            else:
                packed.append(struct.pack("<i", arg))
        try:
            return self.kernel(name).launch(
                grid, block, packed, memory=self.memory, shared_bytes=shared, trace=trace, max_steps=max_steps,
                cooperative=cooperative,
            )  # fmt: skip
        finally:
            for arg, held in back:
                arg[...] = held.data.view(arg.dtype).reshape(arg.shape)
