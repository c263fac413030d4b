"""A kernel for each form: load registers, multiply once, store registers."""

from __future__ import annotations

from climb.validation.tensor_products.forms import BITS, Form
from climb.validation.tensor_products.fragments import registers

_WORDS = {"f64": ("double", "d"), "f32": ("float", "f")}
_METADATA = ("", ", const unsigned* e")
HEAD = r"""
typedef unsigned long long u64;
__device__ u64 descriptor(const void* at, int stride) {  // core matrices of 128 bytes, neighbours in k, then in m or n
  u64 start = (unsigned)__cvta_generic_to_shared(at);
  return start >> 4 | u64(128 >> 4) << 16 | u64(stride >> 4) << 32;
}
"""


def kernel(form: Form) -> str:
    """CUDA C++ of a kernel with the form's name and the parameters (a, b, c, d, number of products or warps).

    Kernels of sparse products have the metadata, (warps or warpgroups, threads), before d.
    """
    return {"tile": _tile, "warpgroup": _warpgroup}.get(form.by, _warp)(form)


def _word(form: Form, matrix: str) -> tuple[str, str]:
    """The C++ type of a register and its letter in asm."""
    return _WORDS.get(getattr(form, matrix), ("unsigned", "r"))


def _vectors(counts: dict[str, int]) -> dict[str, str]:
    """Lists of the operands %0, %1, ... of asm, in the order of `counts`."""
    at, out = 0, {}
    for name, count in counts.items():
        out[name] = "{" + ", ".join(f"%{at + index}" for index in range(count)) + "}"
        at += count
    return out


def _operands(form: Form, matrix: str, count: int, prefix: str = "") -> str:
    name = matrix.upper()
    return ", ".join(f'"{prefix}{_word(form, matrix)[1]}"({name}[{index}])' for index in range(count))


def _product(form: Form, counts: dict[str, int]) -> str:
    """The asm statement of a warp's product."""
    at = _vectors({matrix: counts[matrix] for matrix in "dabc"})
    ins = ", ".join(_operands(form, matrix, counts[matrix]) for matrix in "abc")
    if form.sparse:
        ins += ', "r"(e[w * 32 + l])'
        at["c"] += f", %{sum(counts.values())}, {form.selector}"
    text = f"{form.opcode} {at['d']}, {at['a']}, {at['b']}, {at['c']};"
    return f'asm volatile("{text}" : {_operands(form, "d", counts["d"], "=")} : {ins});'


def _warp(form: Form) -> str:
    counts = {matrix: registers(matrix, form) for matrix in "abcd"}
    words = {matrix: _word(form, matrix)[0] for matrix in "abcd"}
    parameters = ", ".join(f"const {words[matrix]}* {matrix}" for matrix in "abc") + _METADATA[form.sparse]
    declared = " ".join(f"{words[matrix]} {matrix.upper()}[{counts[matrix]}];" for matrix in "abcd")
    loads = "\n".join(
        f"  for (int i = 0; i < {counts[m]}; ++i) {m.upper()}[i] = {m}[(w * {counts[m]} + i) * 32 + l];" for m in "abc"
    )
    return f"""
extern "C" __global__ void {form.name}({parameters}, {words["d"]}* d, int count) {{
  int w = (blockIdx.x * blockDim.x + threadIdx.x) / 32, l = threadIdx.x % 32;
  if (w >= count) return;
  {declared}
{loads}
  {_product(form, counts)}
  for (int i = 0; i < {counts["d"]}; ++i) d[(w * {counts["d"]} + i) * 32 + l] = D[i];
}}
"""


def _tile_registers(form: Form, matrix: str) -> int:
    """The registers that PTX has for a fragment of wmma."""
    kind = getattr(form, matrix)
    if matrix in "ab":
        each = {"tf32": 4, "f64": 1, "f16": 8}.get(kind)
        return each or {8: 2, 16: 4, 32: 8}[form.m if matrix == "a" else form.n]
    return {"f16": 4, "f32": 8, "f64": 2}[kind]


def _tile(form: Form) -> str:
    """All matrices are row-major, each product's behind the one before it."""
    shape = f"m{form.m}n{form.n}k{form.k}"
    counts = {matrix: _tile_registers(form, matrix) for matrix in "abcd"}
    sizes = {"a": form.m * form.k, "b": form.k * form.n, "c": form.m * form.n, "d": form.m * form.n}
    strides = {"a": form.k, "b": form.n, "c": form.n, "d": form.n}
    lines = []
    for matrix in "abc":
        kind, count = getattr(form, matrix), counts[matrix]
        place = f"(const char*){matrix} + w * {sizes[matrix] * BITS[kind] // 8}ll"
        text = (
            f"wmma.load.{matrix}.sync.aligned.row.{shape}.{kind} {_vectors({matrix: count})[matrix]}, [%{count}], "
            f"{strides[matrix]};"
        )
        lines.append(f"{_word(form, matrix)[0]} {matrix.upper()}[{count}];")
        lines.append(f'asm volatile("{text}" : {_operands(form, matrix, count, "=")} : "l"({place}));')
    lines.append(f"{_word(form, 'd')[0]} D[{counts['d']}];")
    lines.append(_product(form, counts))
    vector = "{" + ", ".join(f"%{index + 1}" for index in range(counts["d"])) + "}"
    place = f"(char*)d + w * {sizes['d'] * BITS[form.d] // 8}ll"
    text = f"wmma.store.d.sync.aligned.row.{shape}.{form.d} [%0], {vector}, {form.n};"
    lines.append(f'asm volatile("{text}" :: "l"({place}), {_operands(form, "d", counts["d"])} : "memory");')
    body = "\n  ".join(lines)
    return f"""
extern "C" __global__ void {form.name}(const void* a, const void* b, const void* c, void* d, int count) {{
  int w = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (w >= count) return;
  {body}
}}
"""


def _warpgroup(form: Form) -> str:
    """One product a block; a has 64 rows of 32 bytes, b n of them, of 64 if a is sparse; c and d are registers."""
    words = 16 if form.sparse else 8  # of a row of b
    count, (word, letter) = registers("d", form), _word(form, "d")
    left = "{" + ", ".join(f"%{count + index}" for index in range(4)) + "}" if form.registers else f"%{count}"
    at = count + (4 if form.registers else 1)
    ins = [f'"r"(A[{index}])' for index in range(4)] if form.registers else ['"l"(descriptor(sa, 256))']
    ins += [f'"l"(descriptor(sb, {32 * words}))', f'"r"({int(not form.fresh)})']
    constants = "" if form.d == "s32" else f", {-1 if form.negated else 1}, 1"
    if form.a in ("f16", "bf16"):
        constants += ", 0" if form.registers else ", 0, 0"
    sparse = ""
    if form.sparse:
        ins.append('"r"(e[blockIdx.x * 128 + l])')
        sparse = f"%{at + 2}, {form.selector}, "
    text = (
        f"{{.reg .pred p; setp.ne.b32 p, %{at + 1}, 0; {form.opcode} {_vectors({'d': count})['d']}, {left}, %{at}, "
        f"{sparse}p{constants};}}"
    )
    outs = ", ".join(f'"+{letter}"(D[{index}])' for index in range(count))
    own = (
        "unsigned A[4];\n  for (int i = 0; i < 4; ++i)\n"
        "    A[i] = a[(blockIdx.x * 64 + l / 32 * 16 + l % 32 / 4 + i % 2 * 8) * 8 + l % 4 + i / 2 * 4];"
    )
    return f"""
extern "C" __global__ void {form.name}(const unsigned* a, const unsigned* b, const {word}* c{_METADATA[form.sparse]},
                                       {word}* d, int) {{
  __shared__ __align__(1024) unsigned sa[64 * 8], sb[{form.n} * {words}];
  int l = threadIdx.x;
  for (int i = l; i < 64 * 8; i += 128)
    sa[i / 64 * 64 + i % 8 / 4 * 32 + i / 8 % 8 * 4 + i % 4] = a[blockIdx.x * 64 * 8 + i];
  for (int i = l; i < {form.n} * {words}; i += 128)
    sb[i / {8 * words} * {8 * words} + i % {words} / 4 * 32 + i / {words} % 8 * 4 + i % 4] =
        b[blockIdx.x * {form.n} * {words} + i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  {own if form.registers else ""}
  {word} D[{count}];
  for (int i = 0; i < {count}; ++i) D[i] = c[(blockIdx.x * {count} + i) * 128 + l];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{text}" : {outs} : {", ".join(ins)} : "memory");
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < {count}; ++i) d[(blockIdx.x * {count} + i) * 128 + l] = D[i];
}}
"""
