"""Find the bytes of shared memory that wgmma reads for a descriptor.

Shared memory holds the numbers of its own elements, digit by digit; a product with a one-hot matrix copies elements of
an operand to the accumulators, from which the place of each element follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from climb.validation.tensor_products.comparing import Launch
from climb.validation.tensor_products.forms import BITS, Form
from climb.validation.tensor_products.fragments import warpgroup_layout

REGION = 1 << 16  # bytes that hold numbers; the one-hot matrix lies behind them
SHARED = REGION + (1 << 13) + (1 << 12)  # the region begins at a multiple of 8 KiB
_DIGITS = {"f16": (11, 2), "tf32": (11, 2), "s8": (7, 3)}  # bits of a digit, digits of a number
_ONE = {"f16": "0x3c00", "tf32": "0x3f800000", "s8": "1"}
_TYPES = {"f16": "unsigned short", "tf32": "unsigned", "s8": "unsigned char"}
#: Row (0: the lower, 1: the upper) and number of the nibble i in a lane's metadata.
_HOLDS = {"f16": ("i / 4", "l % 4 * 4 + i % 4"), "s8": ("l % 2", "l % 4 / 2 * 8 + i")}
_STORE = {
    "f16": 'float f = v; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(((unsigned short*)s)[i]) : "f"(f));',
    "tf32": "((float*)s)[i] = v;",
    "s8": "((signed char*)s)[i] = v;",
}


@dataclass(frozen=True)
class Layout:
    """One operand of one form: `side` "a" or "b", K-major or `transposed`; "b" also of a `sparse` product."""

    kind: str
    n: int
    side: str
    transposed: bool
    sparse: bool = False

    @property
    def name(self) -> str:
        """Its name in the saved file."""
        return f"{self.kind}_{self.side}_{int(self.transposed)}" + "_sparse" * self.sparse

    @property
    def form(self) -> Form:
        """The product that reads it."""
        k, d = (256 << self.sparse) // BITS[self.kind], "s32" if self.kind == "s8" else "f32"
        opcode = f"wgmma.mma_async{'.sp' * self.sparse}.sync.aligned.m64n{self.n}k{k}.{d}.{self.kind}.{self.kind}"
        name, kinds = f"layout_{self.name}", (self.kind, self.kind, d, d)
        return Form(name, opcode, 64, self.n, k, *kinds, "warpgroup", sparse=self.sparse)

    @property
    def rows(self) -> int:
        """Rows of the operand: m or n."""
        return self.n if self.side == "b" else 64


LAYOUTS = (
    Layout("f16", 128, "b", False), Layout("f16", 128, "b", True), Layout("f16", 16, "a", True),
    Layout("tf32", 8, "a", False), Layout("s8", 64, "b", False), Layout("f16", 128, "b", False, True),
    Layout("f16", 128, "b", True, True), Layout("s8", 64, "b", False, True),
)  # fmt: skip


_FIRST_SPARSE = next(each for each in LAYOUTS if each.sparse)
# Of a sparse A whose row m has a one at m % K: the stored place of it, and the nibbles, which choose 0 and 1 elsewhere.
_SPARSE = """
__device__ unsigned stored(unsigned k) { return k / 4 * 2 + (k % 4 > 0); }
__device__ unsigned nibble(unsigned k, unsigned q) { return (q == k / 4 && k % 4 > 1 ? k % 4 : 1) << 2; }
"""


def cases() -> np.ndarray:
    """Descriptors: start, leading and stride bytes, base offset, code of the swizzle; int32 (cases, 5)."""
    out = []
    pairs = ((128, 256), (256, 128), (2048, 1024), (1024, 2048), (512, 4096), (16, 1024), (4096, 512), (1152, 1280))
    for swizzle in range(4):
        out += [(0, *pair, 0, swizzle) for pair in pairs]
        starts = (16, 32, 48, 64, 96, 128, 256, 384, 512, 896, 1024, 1056, 2048)
        out += [(start, 2048, 1024, 0, swizzle) for start in starts]
        for base in (1, 2, 4, 7):
            out += [(start, 2048, 1024, base, swizzle) for start in (0, base * 128, base * 128 + 32)]
    return np.array(out, np.int32)


def kernel(layout: Layout) -> str:
    """CUDA C++ with the parameters (cases, d, digit); a block for each case."""
    form, kind = layout.form, layout.kind
    count, size, k = form.n // 2, BITS[kind] // 8, form.k
    (letter, word) = ("f", "float") if form.d == "f32" else ("r", "unsigned")
    per = 4 // size
    if layout.side == "b":  # a[m][k] = (m % K == k), in registers
        place = "stored" if layout.sparse else ""
        other = f"""unsigned A[4];
  for (int i = 0; i < 4; ++i) {{
    int one = {place}((l / 32 * 16 + l % 32 / 4 + i % 2 * 8) % {k}) - (l % 4 + i / 2 * 4) * {per};
    A[i] = one >= 0 && one < {per} ? {_ONE[kind]}u << one * {8 * size} : 0;
  }}"""
        if layout.sparse:
            row, nibble = _HOLDS[kind]
            other += f"""
  unsigned e = 0;
  for (int i = 0; i < 8; ++i)
    e |= nibble((l / 32 * 16 + l % 32 / 4 + ({row}) * 8) % {k}, {nibble}) << 4 * i;"""
        left, ins, right = (
            "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}",
            [f'"r"(A[{i}])' for i in range(4)],
            4,
        )
        ins += ['"l"(mine)'] + ['"r"(e)'] * layout.sparse
    else:  # b[k][n] = (k == n), in plain core matrices
        other = f"""for (int i = l; i < {form.n * k}; i += 128) {{
    int r = i / {k}, byte = i % {k} * {size}, at = r / 8 * 256 + byte / 16 * 128 + r % 8 * 16 + byte % 16;
    *({_TYPES[kind]}*)(s + {REGION} + at) = r == i % {k} ? {_ONE[kind]} : 0;
  }}
  u64 other = u64(base + {REGION} >> 4) | u64(128 >> 4) << 16 | u64(256 >> 4) << 32;"""
        left, ins, right = f"%{count}", ['"l"(mine)', '"l"(other)'], 1
    constants = "" if form.d == "s32" else ", 1, 1"
    metadata = f"%{count + right + 1}, 0, " if layout.sparse else ""
    if kind == "f16":
        constants += f", {int(layout.transposed)}" if layout.side == "b" else f", {int(layout.transposed)}, 0"
    vector = "{" + ", ".join(f"%{i}" for i in range(count)) + "}"
    outs = ", ".join(f'"+{letter}"(D[{i}])' for i in range(count))
    text = f"{form.opcode} {vector}, {left}, %{count + right}, {metadata}1{constants};"
    return f"""{_SPARSE if layout == _FIRST_SPARSE else ""}
extern "C" __global__ void {form.name}(const int* cases, {word}* d, int digit) {{
  extern __shared__ unsigned char raw[];
  int l = threadIdx.x;
  const int* mine_ = cases + blockIdx.x * 5;
  unsigned low = (unsigned)__cvta_generic_to_shared(raw), base = (low + 8191) / 8192 * 8192;
  unsigned char* s = raw + (base - low);
  for (int i = l; i < {REGION // size}; i += 128) {{
    unsigned v = i >> {_DIGITS[kind][0]} * digit & {(1 << _DIGITS[kind][0]) - 1};
    {_STORE[kind]}
  }}
  {other}
  u64 mine = u64((base + mine_[0] & 0x3ffff) >> 4) | u64(mine_[1] >> 4) << 16 | u64(mine_[2] >> 4) << 32 |
             u64(mine_[3]) << 49 | u64(mine_[4]) << 62;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  {word} D[{count}];
  for (int i = 0; i < {count}; ++i) D[i] = 0;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{text}" : {outs} : {", ".join(ins)} : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < {count}; ++i) d[(blockIdx.x * {count} + i) * 128 + l] = D[i];
}}
"""


def read(layout: Layout, launch: Launch, which: np.ndarray) -> np.ndarray:
    """The first byte of each piece of 16 bytes: uint16 (cases, rows, bytes of k / 16), or (cases, k, rows / 8) if
    transposed."""
    form = layout.form
    bits, digits = _DIGITS[layout.kind]
    place = np.zeros((len(which), form.n // 2, 128), np.int64)
    for digit in range(digits):
        d = np.zeros(place.shape, np.float32 if form.d == "f32" else np.int32)
        place += launch(form.name, len(which), 128, [which, d], digit).astype(np.int64) << bits * digit
    row, column = warpgroup_layout(form)
    table = np.zeros((len(which), 64, form.n), np.int64)
    table[:, row, column] = place.swapaxes(1, 2)[..., None]
    by_row = table[:, : form.k].swapaxes(1, 2) if layout.side == "b" else table[:, :, : form.k]  # rows x k
    per = 128 // BITS[layout.kind]
    pieces = by_row[:, ::per].swapaxes(1, 2) if layout.transposed else by_row[:, :, ::per]
    return (pieces * (BITS[layout.kind] // 8)).astype(np.uint16)[:, :64]
