"""printf compared with C's; assertions and traps."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from harness import Device

from climb.emulator import AssertionFailed, OutOfBounds, Trap, UnsupportedInstruction
from climb.emulator.runtime import system_calls

LIBC = ctypes.CDLL(None)


def in_c(form: str, *values: object) -> str:
    """The text that the C library prints."""
    room = ctypes.create_string_buffer(400)
    LIBC.snprintf(room, 400, form.encode(), *values)
    return room.value.decode()


def printed(capsys, statement: str, grid=1, block=1, *args) -> str:
    device = Device('extern "C" __global__ void k(const int* a, int* o) {\n int t = threadIdx.x;\n' + statement + "\n}")
    capsys.readouterr()
    device.launch("k", grid, block, *(args or (np.zeros(64, np.int32), np.zeros(64, np.int32))))
    return capsys.readouterr().out


INTEGERS = (0, 7, -7, 2**31 - 1, -(2**31))
FORMS = ("%d", "%i", "%5d|", "%-5d|", "%05d", "%+d", "% d", "%.3d", "%8.3d|", "%08.3d|", "%.0d", "%hd", "%hhd", "%u",
         "%+u", "%x", "%X", "%#x", "%#8X|", "%o", "%#o", "%#08x|", "%-#8o|", "%+.0d|")  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_integers_are_printed_as_in_c(capsys, form):
    statement = "".join(f'printf("{form}\\n", {v if v != -(2**31) else "-2147483647 - 1"});' for v in INTEGERS)
    assert printed(capsys, statement) == "".join(in_c(form + "\n", ctypes.c_int(v)) for v in INTEGERS)


@pytest.mark.parametrize("form", ["%ld", "%lld", "%lu", "%llu", "%llx", "%25lld|", "%zu"])
def test_long_integers_are_printed_as_in_c(capsys, form):
    values = (0, -1, 2**40 + 3, 2**63 - 1)
    statement = "".join(f'printf("{form}\\n", {v}ll);' for v in values)
    assert printed(capsys, statement) == "".join(in_c(form + "\n", ctypes.c_longlong(v)) for v in values)


@pytest.mark.parametrize(
    "form", ["%f", "%e", "%g", "%G", "%E", "%.2f", "%10.3e|", "%-10.1f|", "%010.2f", "%+g", "% f", "%#g", "%.0f"]
)
def test_floats_are_printed_as_in_c(capsys, form):
    values = {"0.f": 0.0, "-0.f": -0.0, "1.5f": 1.5, "-1234567.f": -1234567.0, "1e-9": 1e-9, "1e30": 1e30,
              "__int_as_float(0x7f800000)": np.inf, "__int_as_float(0xff800000)": -np.inf,
              "__longlong_as_double(0x7ff8000000000000)": np.nan}  # fmt: skip
    statement = "".join(f'printf("{form}\\n", {text});' for text in values)
    assert printed(capsys, statement) == "".join(in_c(form + "\n", ctypes.c_double(v)) for v in values.values())


def test_other_conversions_and_aligned_values_are_printed_as_in_c(capsys):
    statement = (
        'o[0] = printf("%c%c %s|%6s|%-6s|%.2s %d %lld %d %f 100%% %*d %-*d %.*f\\n", 65, \'b\', "text", "abc", "abc",'
        ' "abc", 1, 2ll, 3, 4.5f, 4, 5, 4, 6, 2, 1.239); printf("plain\\n"); printf("%p\\n", a); o[1] = printf("x\\n");'
    )
    out = np.zeros(64, np.int32)
    text = printed(capsys, statement, 1, 1, np.zeros(64, np.int32), out).splitlines()
    assert text == ["Ab text|   abc|abc   |ab 1 2 3 4.500000 100%    5 6    1.24", "plain", "0x7f0000000000", "x"]
    assert out[:2].tolist() == [16, 0]


def test_output_is_ordered_by_block_then_time_then_thread(capsys):
    text = printed(
        capsys, 'printf("a %d %d\\n", blockIdx.x, t); if (t % 2) printf("odd %d\\n", t); __syncthreads();'
        'if (t == 0) printf("end %d\\n", blockIdx.x);', 2, 3,
    )  # fmt: skip
    want = [f"{line}" for b in range(2) for line in (f"a {b} 0", f"a {b} 1", f"a {b} 2", "odd 1", f"end {b}")]
    assert text.splitlines() == want


def test_strings_from_local_memory_and_arguments_are_printed(capsys):
    statement = 'char s[4] = {(char)(97 + t), 98, (char)a[0], 0}; printf("%s %s\\n", s, (const char*)a);'
    text = printed(capsys, statement, 1, 2, np.frombuffer(b"hello, w\0\0\0\0", np.int32).copy(), np.zeros(1, np.int32))
    assert text.splitlines() == ["abh hello, w", "bbh hello, w"]


def test_output_is_bounded(capsys):
    lines = printed(capsys, 'for (int i = 0; i < 100; ++i) printf("%d\\n", t);', 1, 100).splitlines()
    assert lines[: system_calls.LIMIT] == [str(n % 100) for n in range(system_calls.LIMIT)]
    assert f"{10000 - system_calls.LIMIT} more" in lines[-1] and len(lines) == system_calls.LIMIT + 2


@pytest.mark.parametrize(
    "statement,error,what",
    [
        ("if (t < 9) assert(t < 3 && a);", AssertionFailed, "assertion failed: t < 3 && a"),
        ("if (t >= 3 && t < 9) __trap();", Trap, "the kernel stops itself"),
        ('if (t >= 3 && t < 9) printf("%s", (const char*)8);', OutOfBounds, "reads 1 bytes at 0x8"),
        ('if (t >= 3 && t < 9) printf("%a", 1.0);', UnsupportedInstruction, "'%a' is not supported"),
    ],
)
def test_assertions_traps_and_bad_formats_stop_a_kernel(capsys, statement, error, what):
    """The error names the place and the threads; earlier output is still printed."""
    with pytest.raises(error) as caught:
        printed(capsys, 'if (t == 0 && blockIdx.x == 0) printf("before\\n"); __syncthreads();\n' + statement, 2, 16)
    where = caught.value.where
    assert what in caught.value.what and (where.line, where.block, where.thread) == (4, (0, 0, 0), (3, 0, 0))
    assert where.lanes == (12 if error in (AssertionFailed, Trap) else 1) and capsys.readouterr().out == "before\n"


def test_assertions_that_hold_change_nothing(capsys):
    assert printed(capsys, "assert(t < 64); o[t] = a[t];", 1, 64) == ""


def test_assertion_that_fails_in_a_single_thread_names_its_expression(capsys) -> None:
    with pytest.raises(AssertionFailed, match="assertion failed: t < 3 && a") as caught:
        printed(capsys, "if (t == 3) assert(t < 3 && a);", 1, 16)
    assert (caught.value.where.thread, caught.value.where.lanes) == ((3, 0, 0), 1)
