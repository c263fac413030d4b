"""Random programs of typed operations whose result IEEE 754, or the CUDA manual, defines to the last bit.

Every statement computes a new value of one of eight types from earlier ones: arithmetic in each rounding mode,
conversions, bit operations, pairs and quadruples in a word, shuffles and votes, exchanges through shared memory,
atomics whose order does not matter. NaNs are made equal before they are stored or reinterpreted, since no standard
defines their bits. Approximations (sine, exponentials) are left out.
"""

from __future__ import annotations

import random
from itertools import product

#: C++ names of the types, by letter.
TYPES = {
    "u": "unsigned", "s": "int", "U": "unsigned long long", "S": "long long",
    "f": "float", "d": "double", "h": "__half", "b": "__nv_bfloat16",
}  # fmt: skip
THREADS = 64
STATEMENTS = 40
#: Number of words that a program reads, and of words that the atomics of one kind update.
WORDS, SLOTS = 512, 16

HEAD = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef unsigned long long u64;
__device__ unsigned word(unsigned x) { return x; }
__device__ unsigned word(int x) { return x; }
__device__ unsigned word(u64 x) { return unsigned(x) ^ unsigned(x >> 32) * 0x9E3779B9u; }
__device__ unsigned word(long long x) { return word(u64(x)); }
__device__ unsigned word(float x) { return x != x ? 0x7FFFFFFFu : __float_as_uint(x); }
__device__ unsigned word(double x) { return x != x ? 0x7FF80000u : word(u64(__double_as_longlong(x))); }
__device__ unsigned word(__half x) {
    unsigned short bits = __half_as_ushort(x);
    return (bits & 0x7FFF) > 0x7C00 ? 0x7FFFu : bits;
}
__device__ unsigned word(__nv_bfloat16 x) {
    unsigned short bits = __bfloat16_as_ushort(x);
    return (bits & 0x7FFF) > 0x7F80 ? 0x7FFFu : bits;
}
"""

#: The first values of each type, made of the words `{w}` and `{v}`.
SEEDS = {
    "u": "{w}", "s": "int({w})", "U": "u64({w}) << 32 | {v}", "S": "(long long)(u64({v}) << 32 | {w})",
    "f": "__uint_as_float({w})", "d": "__longlong_as_double(u64({w}) << 32 | {v})",
    "h": "__ushort_as_half((unsigned short)({w} ^ {w} >> 16))",
    "b": "__ushort_as_bfloat16((unsigned short)({w} >> 16))",
}  # fmt: skip


def _operations() -> list[tuple[str, str, str]]:
    """Return all operations: (result type, operand types, expression of {0}, {1}, ...)."""
    out: list[tuple[str, str, str]] = []

    def add(result: str, operands: str, *codes: str) -> None:
        out.extend((result, operands, code) for code in codes)

    modes = ("rn", "rz", "ru", "rd")
    for mode in modes:
        add("f", "ff", *(f"__f{name}_{mode}({{0}}, {{1}})" for name in ("add", "sub", "mul", "div")))
        add("f", "fff", f"__fmaf_{mode}({{0}}, {{1}}, {{2}})")
        add("f", "f", f"__fsqrt_{mode}({{0}})", f"__frcp_{mode}({{0}})")
        add("d", "dd", *(f"__d{name}_{mode}({{0}}, {{1}})" for name in ("add", "sub", "mul", "div")))
        add("d", "ddd", f"__fma_{mode}({{0}}, {{1}}, {{2}})")
        add("d", "d", f"__dsqrt_{mode}({{0}})", f"__drcp_{mode}({{0}})")
        add("f", "d", f"__double2float_{mode}({{0}})")
        for letter, name in (("s", "int"), ("u", "uint"), ("S", "ll"), ("U", "ull")):
            add(letter, "f", f"__float2{name}_{mode}({{0}})")
            add(letter, "d", f"__double2{name}_{mode}({{0}})")
            add(letter, "h", f"__half2{name}_{mode}({{0}})")
            add("f", letter, f"__{name}2float_{mode}({{0}})")
            if name.endswith("ll"):
                add("d", letter, f"__{name}2double_{mode}({{0}})")
            add("h", letter, f"__{name}2half_{mode}({{0}})")
        add("h", "f", f"__float2half_{mode}({{0}})")
        add("b", "f", f"__float2bfloat16_{mode}({{0}})")
    add("d", "s", "__int2double_rn({0})", "double({0})")
    add("d", "u", "__uint2double_rn({0})")
    add("d", "f", "double({0})")
    add("f", "h", "__half2float({0})")
    add("f", "b", "__bfloat162float({0})")
    for letter, suffix in (("f", "f"), ("d", "")):
        add(letter, letter * 2, *(f"{n}{suffix}({{0}}, {{1}})" for n in ("fmin", "fmax", "fdim")))
        add(letter, letter * 2, f"copysign{suffix}({{0}}, {{1}} != {{1}} ? 1 : {{1}})")
        add(letter, letter, *(f"{n}{suffix}({{0}})" for n in ("fabs", "trunc", "floor", "ceil", "rint", "round")))
        add("u", letter * 2, *(f"unsigned({{0}} {sign} {{1}})" for sign in ("<", "<=", "==", "!=", ">", ">=")))
        add(letter, f"u{letter}{letter}", "({0} & 4u ? {1} : {2})", "({0} > 99u ? -{1} : {2})")
    add("f", "f", "__saturatef({0})")
    for letter in "hb":
        add(
            letter,
            letter * 2,
            *(f"__h{n}({{0}}, {{1}})" for n in ("add_rn", "sub_rn", "mul_rn", "min", "max", "min_nan")),
        )
        add(letter, letter * 2, "__hadd_sat({0}, {1})")
        add(letter, letter * 3, "__hfma({0}, {1}, {2})", "__hfma_relu({0}, {1}, {2})")
        add(letter, letter, "__hneg({0})", "__habs({0})")
        add("u", letter * 2, "unsigned(__hlt({0}, {1}))", "unsigned(__hgeu({0}, {1}))", "unsigned(__heq({0}, {1}))")
    for pair, make in (("h", "__halves2half2"), ("b", "__halves2bfloat162")):
        low = {"h": "__low2half", "b": "__low2bfloat16"}[pair]
        high = {"h": "__high2half", "b": "__high2bfloat16"}[pair]
        for side, name in product((low, high), ("add2_rn", "mul2_rn", "sub2_rn", "min2")):
            add(pair, pair * 4, f"{side}(__h{name}({make}({{0}}, {{1}}), {make}({{2}}, {{3}})))")
    for letter in "usUS":
        wide = letter in "US"
        add(letter, letter * 2, *(f"({{0}} {sign} {{1}})" for sign in ("+", "-", "*", "&", "|", "^")))
        add(letter, letter * 2, "({0} / ({1} | 1))", "({0} % ({1} | 1))", "min({0}, {1})", "max({0}, {1})")
        add(letter, letter + "u", f"({{0}} >> ({{1}} & {63 if wide else 31}u))")
        add(letter, letter + "u", f"({{0}} << ({{1}} & {63 if wide else 31}u))")
        add(letter, letter, "~{0}", "-{0}")
        add("u", letter * 2, "unsigned({0} < {1})", "unsigned({0} >= {1})", "unsigned({0} == {1})")
        add(letter, f"u{letter}{letter}", "({0} & 1u ? {1} : {2})")
    add("u", "uu", "__umulhi({0}, {1})", "__uhadd({0}, {1})", "__urhadd({0}, {1})", "__umul24({0}, {1})")
    add("s", "ss", "__mulhi({0}, {1})", "__hadd({0}, {1})", "__rhadd({0}, {1})", "__mul24({0}, {1})")
    add("s", "s", "abs({0})", "int(short({0}))", "int((signed char)({0}))", "__ffs({0})")
    add("u", "u", "unsigned(__popc({0}))", "unsigned(__clz({0}))", "__brev({0})", "unsigned((unsigned short)({0}))")
    add("U", "U", "u64(__popcll({0}))", "u64(__clzll({0}))", "__brevll({0})", "u64(__ffsll({0}))")
    add("U", "UU", "__umul64hi({0}, {1})")
    add("S", "SS", "__mul64hi({0}, {1})")
    add("S", "S", "llabs({0})")
    add("u", "uuu", "__byte_perm({0}, {1}, {2})", "__usad({0}, {1}, {2})", "__dp4a({0}, {1}, {2})")
    add("s", "ssu", "int(__sad({0}, {1}, {2}))")
    add("s", "sss", "__dp4a({0}, {1}, {2})", "__dp2a_lo({0}, {1}, {2})", "__dp2a_hi({0}, {1}, {2})")
    add("u", "uuu", *(f"__funnelshift_{how}({{0}}, {{1}}, {{2}})" for how in ("l", "r", "lc", "rc")))
    add("U", "uu", "(u64({0}) * {1})")
    add("S", "ss", "((long long)({0}) * {1})")
    add("U", "S", "u64({0})")
    add("S", "u", "(long long)({0})")
    add("S", "s", "(long long)({0})")
    add("u", "U", "unsigned({0})", "unsigned({0} >> 32)")
    add("u", "f", "word({0})")
    add("u", "d", "word({0})")
    add("s", "f", "int(word({0}))")
    add("f", "u", "__uint_as_float({0})")
    add("d", "U", "__longlong_as_double((long long)({0}))")
    for name in ("add", "sub", "addss", "addus", "subss", "subus", "absdiffs", "absdiffu", "avgs", "avgu", "haddu",
                 "maxs", "maxu", "mins", "minu", "seteq", "setltu", "setgts", "cmpeq", "cmpgeu", "cmplts", "sads",
                 "sadu"):  # fmt: skip
        add("u", "uu", f"__v{name}2({{0}}, {{1}})", f"__v{name}4({{0}}, {{1}})")
    for name in ("abs", "absss", "neg", "negss"):
        add("u", "u", f"__v{name}2({{0}})", f"__v{name}4({{0}})")
    # For sm_90, ptxas 12.9 and 13.0 lose the negation of an operand of these: on an H200 the programs 4079, 4913, 5926
    # and 5956 differ, and the emulator is right.
    add("s", "sss", "__viaddmax_s32({0}, {1}, {2})", "__vimax3_s32({0}, {1}, {2})", "__vimin3_s32({0}, {1}, {2})",
        "__viaddmin_s32_relu({0}, {1}, {2})", "__vimax3_s32_relu({0}, {1}, {2})")  # fmt: skip
    add("u", "uuu", "__viaddmax_u32({0}, {1}, {2})", "__vimin3_u32({0}, {1}, {2})", "__vimax3_u16x2({0}, {1}, {2})",
        "__vimax3_s16x2({0}, {1}, {2})", "__viaddmax_s16x2({0}, {1}, {2})", "__viaddmin_u16x2({0}, {1}, {2})",
        "__vimin3_s16x2_relu({0}, {1}, {2})")  # fmt: skip
    return out


#: Operations that all lanes of a warp, or all threads of a block, execute together: not inside a branch.
TOGETHER: list[tuple[str, str, str]] = [
    *(
        (letter, letter + "u", f"__shfl_{how}_sync(~0u, {{0}}, {{1}} & 31u{width})")
        for letter in "usUSfd"
        for how in ("up", "down", "xor", "idx")
        for width in ("", ", 8")
    ),
    ("u", "u", "__ballot_sync(~0u, {0} & 1u)"),
    ("u", "u", "unsigned(__any_sync(~0u, ({0} & 31u) == 7u))"),
    ("u", "u", "unsigned(__all_sync(~0u, ({0} & 31u) != 7u))"),
    ("u", "u", "__match_any_sync(~0u, {0} & 7u)"),
    ("u", "U", "__match_any_sync(~0u, {0} & 3u)"),
    *(("u", "u", f"__reduce_{how}_sync(~0u, {{0}})") for how in ("add", "min", "max", "and", "or", "xor")),
    *(("s", "s", f"__reduce_{how}_sync(~0u, {{0}})") for how in ("add", "min", "max")),
    ("u", "u", "unsigned(__syncthreads_count({0} & 1u))"),
    ("u", "u", "unsigned(__syncthreads_and(({0} & 127u) != 7u))"),
    ("u", "u", "unsigned(__syncthreads_or(({0} & 127u) == 7u))"),
]
TOGETHER = [(r, o, c.replace("__shfl_idx_sync", "__shfl_sync")) for r, o, c in TOGETHER]

#: Integer atomics whose result in memory does not depend on their order: type and call.
ATOMICS = [
    *(("u", f"atomic{how}(&{{at}}, {{value}})") for how in ("Add", "Sub", "Min", "Max", "And", "Or", "Xor")),
    *(("s", f"atomic{how}((int*)&{{at}}, {{value}})") for how in ("Add", "Min", "Max")),
]
SUMS = SLOTS * len(ATOMICS)
OPERATIONS = _operations()


class Writer:
    """Write one program; `values` holds the names of the values so far, by type."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.values: dict[str, list[str]] = {letter: [] for letter in TYPES}
        self.count = 0

    def emit(self, code: str) -> None:
        """Add a line."""
        self.lines.append(f"    {code}")

    def value(self, kind: str, code: str) -> str:
        """Add a new value of a type. Returns its name."""
        name = f"{kind}{self.count}"
        self.count += 1
        self.emit(f"{TYPES[kind]} {name} = {code};")
        self.values[kind].append(name)
        return name

    def pick(self, kind: str) -> str:
        """Return a random earlier value, more often a recent one."""
        have = self.values[kind]
        return self.rng.choice(have[-6:] if self.rng.random() < 0.7 else have)

    def filled(self, operation: tuple[str, str, str]) -> str:
        """Return the operation's expression with random values as operands."""
        _, operands, code = operation
        return code.format(*(self.pick(kind) for kind in operands))

    def statement(self) -> None:
        """Write an operation, a branch around some, an exchange, or an atomic."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.68:
            operation = rng.choice(OPERATIONS)
            self.value(operation[0], self.filled(operation))
        elif kind < 0.80:
            operation = rng.choice(TOGETHER)
            self.value(operation[0], self.filled(operation))
        elif kind < 0.88:
            letter = rng.choice(tuple(TYPES))
            name = self.value(letter, self.pick(letter))
            condition = rng.choice(("{0} & 1u", "{0} % 3u == 1u", "({0} ^ t) & 2u")).format(self.pick("u"))
            choices = [operation for operation in OPERATIONS if operation[0] == letter]
            first, second = (self.filled(rng.choice(choices)) for _ in range(2))
            self.emit(f"if ({condition}) {{ {name} = {first}; {name} = {self.filled(rng.choice(choices))}; }}")
            self.emit(f"else {{ {name} = {second}; }}")
        elif kind < 0.94:
            source, step, offset = self.pick("u"), rng.randrange(1, 64, 2), rng.randrange(64)
            self.emit(f"shared[t] = {source};")
            self.emit("__syncthreads();  // every thread has written")
            self.value("u", f"shared[(t * {step}u + {offset}u) % {THREADS}u]")
            self.emit("__syncthreads();  // every thread has read")
        else:
            number = rng.randrange(len(ATOMICS))
            letter, call = ATOMICS[number]
            # Each kind has its own words: two kinds on one word would make the result depend on their order.
            at = f"sums[{number * SLOTS}u + {self.pick('u')} % {SLOTS}u]"
            self.emit(call.format(at=at, value=self.pick(letter)) + ";")


def program(seed: int) -> str:
    """Return the source of a kernel `k(in, out, sums)`.

    It reads WORDS words of `in` and updates SUMS words of `sums`. Thread t writes word n of its output to
    `out[n * threads + t]`; `words(source)` is the number of words for each thread.
    """
    writer = Writer(seed)
    for letter, code in SEEDS.items():
        for _ in range(3):
            at, step = writer.rng.randrange(WORDS), writer.rng.randrange(1, 99, 2)
            name = f"w{writer.count}"
            writer.emit(f"const unsigned {name} = in[(i * {step}u + {at}u) % {WORDS}u];")
            other = f"in[(i * {step}u + {at + 7}u) % {WORDS}u]"
            writer.value(letter, code.format(w=name, v=other))
    for _ in range(STATEMENTS):
        writer.statement()
    names = [name for letter in TYPES for name in writer.values[letter]]
    for number, name in enumerate(names):
        writer.emit(f"out[{number}u * gridDim.x * blockDim.x + i] = word({name});")
    head = 'extern "C" __global__ void k(const unsigned* in, unsigned* out, unsigned* sums) {\n'
    head += f"    __shared__ unsigned shared[{THREADS}];\n"
    head += "    const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;\n"
    return HEAD + head + "\n".join(writer.lines) + "\n}\n"


def words(source: str) -> int:
    """Count the words that each thread of a program stores."""
    return source.count("] = word(")
