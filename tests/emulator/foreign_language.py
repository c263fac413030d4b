"""Foreign programs that use less common parts of the language.

Each function launches a program, with the fault of that number planted (0: none), and checks its answer.
"""

from __future__ import annotations

import numpy as np
from foreign_harness import RNG, Foreign, floats, integers, values

# The language


def haxpy(fault: int) -> None:
    x, y = floats(1001).astype(np.float16), floats(1001).astype(np.float16)
    expected = (1.5 * x.astype(np.float64) + y).astype(np.float16)
    Foreign("language", fault).go("haxpy", 2, 128, 1001, np.float16(1.5), x, y)
    assert np.array_equal(y, expected)


def machine(fault: int) -> None:
    device = Foreign("language", fault)
    # The loop computes n! from n; the remaining statements make -((n! + 6) ^ 5) << 2 of it.
    push, add, mul, sub, dup, swap, jnz, halt, over, xor, shl, neg = range(12)
    code = [(push, 1), (over, 0), (mul, 0), (swap, 0), (push, 1), (sub, 0), (swap, 0), (over, 0), (jnz, -7)]
    code += [(push, 3), (dup, 0), (add, 0), (add, 0), (push, 5), (xor, 0), (neg, 0), (push, 2), (shl, 0), (halt, 0)]
    ops, args = (np.array(column, np.int32) for column in zip(*code, strict=True))

    def one(start: int) -> int:
        stack, pc = [start], 0
        while True:
            op, arg = code[pc]
            if op == push:
                stack.append(arg)
            elif op in (add, mul, sub, xor, shl):
                b, a = stack.pop(), stack.pop()
                stack.append({add: a + b, mul: a * b, sub: a - b, xor: a ^ b, shl: a << (b & 31)}[op])
            elif op == dup:
                stack.append(stack[-1])
            elif op == swap:
                stack[-1], stack[-2] = stack[-2], stack[-1]
            elif op == over:
                stack.append(stack[-2])
            elif op == neg:
                stack[-1] = -stack[-1]
            elif op == jnz and stack.pop():
                pc += arg - 1
            elif op == halt:
                return stack[-1]
            pc += 1

    out = device.empty(70, np.int32)
    device.go("machine", 2, 40, ops, args, out, 70)
    assert values(out, np.int32).tolist() == [one(t % 11 + 1) for t in range(70)]


def carved(fault: int) -> None:
    device = Foreign("language", fault)
    n = 45
    d, f, h = RNG.standard_normal(n), floats(n), RNG.integers(0, 99, n).astype(np.uint16)
    out = device.empty(n, np.float64)
    device.go("carved", 1, 32, d, f, h, out, n, shared=14 * n)
    i = np.arange(n)
    product = f[n - 1 - i] * h[i * 7 % n].astype(np.float32)
    np.testing.assert_allclose(values(out, np.float64), d[n - 1 - i] + product, rtol=1e-6, atol=1e-5)


def ptx_inside(fault: int) -> None:
    device = Foreign("language", fault)
    x = RNG.integers(0, 2**32, 100).astype(np.uint32)
    x[::3] %= 2000
    out = device.empty(100, np.uint32)
    device.go("ptx_inside", 2, 64, x, out, 100)
    lane = np.arange(100, dtype=np.uint32) % 32
    r = np.where(x > 1000, x >> 3, x * np.uint32(5)).astype(np.uint32)
    assert np.array_equal(values(out, np.uint32), r + (x ^ r ^ lane) * np.uint32(3) + (x >> 4 & 4095))


def vectors(fault: int) -> None:
    device = Foreign("language", fault, ("shift<short, 3>",))
    x = integers(-99, 99, 50, 3).astype(np.int16)
    out = device.empty(x.shape, np.int16)
    device.go("shift<short, 3>", 1, 32, np.frombuffer(np.array([1, -2, 300], np.int16).tobytes(), "V6")[0], x, out, 50)
    assert np.array_equal(values(out, np.int16).reshape(x.shape), x + np.array([1, -2, 300], np.int16))
