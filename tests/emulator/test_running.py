"""`run`, the command, and the marks of a report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from climb.cli import main
from climb.emulator import ALL_CHECKS, LaunchError, OutOfBounds, Race, UnsupportedInstruction, checking, run
from climb.toolchain import CompileError, KernelNotFound, disassemble

SAXPY = """
__global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""
SEVERAL = """
struct Pair { int first, second; };
__constant__ float weights[4];
extern "C" __constant__ int shift;
template <typename T, int factor> __global__ void scale(const T* in, T* out) {
    out[threadIdx.x] = in[threadIdx.x] * factor; }
__global__ void narrow(unsigned char a, double b, Pair p, long long c, double* out) {
    out[0] = a; out[1] = b; out[2] = p.first - p.second; out[3] = c + shift; }
"""


def test_run_accepts_a_source_string() -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    result = run(SAXPY, grid=4, block=256, args=[1000, 2, x, y])
    assert (y == 2 * np.arange(1000) + 1).all()
    assert result.arrays[3] is y
    assert result.counters.total("global load").requests == 64
    assert "saxpy" in str(result).splitlines()[0]
    assert "y[i] = a * x[i] + y[i];" in str(result)


def test_run_accepts_a_file_that_includes_others(tmp_path: Path) -> None:
    (tmp_path / "twice.cuh").write_text("__device__ float twice(float x) { return 2 * x; }\n")
    path = tmp_path / "k.cu"
    path.write_text('#include "twice.cuh"\n__global__ void k(float* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }\n')
    for source in (path, str(path)):
        x = np.ones(32, np.float32)
        run(source, "k", grid=1, block=32, args=[x])
        assert (x == 2).all()


def test_run_passes_templates_structs_scalars_and_symbols() -> None:
    x, y = np.arange(8), np.zeros(8, np.int64)
    run(SEVERAL, "scale<long long, 3>", grid=1, block=8, args=[x, y])
    assert (y == 3 * x).all()
    out = np.zeros(4)
    pair = np.array([9, 4], np.int32).tobytes()
    run(SEVERAL, "narrow", grid=1, block=1, args=[200, 0.5, pair, -(2**40), out], symbols={"shift": np.int32(7)})
    assert out.tolist() == [200, 0.5, 5, 7 - 2**40]


def test_run_accepts_dynamic_shared_memory_and_non_contiguous_arrays() -> None:
    source = """__global__ void turn(const float* in, float* out) { extern __shared__ float s[]; int t = threadIdx.x;
    s[t] = in[t]; __syncthreads(); out[t] = s[blockDim.x - 1 - t]; }"""
    column, out = np.arange(128, dtype=np.float32).reshape(64, 2)[:, 1], np.zeros((64, 2), np.float32)
    run(source, grid=1, block=64, args=[column, out[:, 0]], shared_mem=256)
    assert (out[:, 0] == column[::-1]).all()
    assert not out[:, 1].any()


@pytest.mark.parametrize(
    ("args", "error", "says"),
    [
        ([1, 2.0, np.zeros(4)], TypeError, "saxpy takes 4 arguments, 3 given"),
        ([np.zeros(4), 1.0, np.zeros(4), np.zeros(4)], TypeError, "argument 0 is an array.*not a pointer"),
        ([1.5, 1.0, np.zeros(4), np.zeros(4)], TypeError, r"argument 0 is 1\.5.*whole number of 4 bytes"),
        ([2**40, 1.0, np.zeros(4), np.zeros(4)], ValueError, "argument 0 is 1099511627776.*4 bytes"),
        ([np.int64(3), 1.0, np.zeros(4), np.zeros(4)], TypeError, "argument 0 has 8 bytes.*has 4"),
        ([1, 1.0, [1.0], np.zeros(4)], TypeError, "argument 2 is of type list; expected a NumPy array"),
        ([1, 1.0, np.array(["a"], object), np.zeros(4)], TypeError, "argument 2 is an array of Python objects"),
        ([1, 1.0, np.zeros(4, ">f4"), np.zeros(4)], TypeError, "argument 2 is of type >f4.*byte order"),
        ([1, 1e300, np.zeros(4), np.zeros(4)], ValueError, "argument 1 is 1e\\+300.*float of 4 bytes"),
    ],
)  # fmt: skip
def test_an_argument_that_does_not_fit_is_named(args, error, says) -> None:
    with pytest.raises(error, match=says):
        run(SAXPY, "saxpy", grid=1, block=32, args=args)


@pytest.mark.parametrize("kind", ["half", "Scale"])
def test_a_number_is_no_half_and_no_struct(kind) -> None:
    """Passed as an integer, 2.0 would be the half 1.2e-7."""
    source = "#include <cuda_fp16.h>\nstruct Scale { float x; };\n__global__ void k(KIND a, KIND* o) { o[0] = a; }"
    value, out = {"half": np.float16(2), "Scale": np.float32(2)}[kind], np.zeros(1, np.float32)
    with pytest.raises(TypeError, match=r"argument 0 is a number, but the parameter is a struct .* a Struct or bytes"):
        run(source.replace("KIND", kind), grid=1, block=1, args=[2.0, out])
    out = np.zeros(1, value.dtype)
    run(source.replace("KIND", kind), grid=1, block=1, args=[value, out])
    assert out[0] == 2


def test_integers_of_128_bits_need_no_option() -> None:
    source = "__global__ void k(const unsigned __int128* x, unsigned __int128* o) { o[0] = x[0] * x[0] / 7; }"
    number, out = 2**63 + 12345, np.zeros(2, np.uint64)
    run(source, grid=1, block=1, args=[np.array([number, 0], np.uint64), out])
    assert int(out[0]) + (int(out[1]) << 64) == number**2 // 7


@pytest.mark.thorough
def test_collectives_come_with_the_header_of_all_of_cub() -> None:
    source = """#include <cub/cub.cuh>
    __global__ void sums(const int* x, int* o) {
        using Reduce = cub::BlockReduce<int, 64>;
        __shared__ Reduce::TempStorage space;
        int sum = Reduce(space).Sum(x[blockIdx.x * 64 + threadIdx.x]);
        if (threadIdx.x == 0) o[blockIdx.x] = sum;
    }
    int main() { cub::DeviceReduce::Sum(nullptr, bytes, x, o, 128); sums<<<2, 64>>>(x, o); }"""
    x, out = np.arange(128, dtype=np.int32), np.zeros(2, np.int32)
    run(source, grid=2, block=64, args=[x, out])
    assert out.tolist() == x.reshape(2, 64).sum(axis=1).tolist()


INCREMENT = "__global__ void inc(float* o, const float* x, int n) { int t = threadIdx.x; if (t < n) o[t] = x[t] + 1; }"


def test_an_array_passed_twice_is_one_allocation() -> None:
    x = np.arange(40, dtype=np.float32)
    run(INCREMENT, grid=1, block=64, args=[x, x, 40])
    assert (x == np.arange(1, 41)).all()
    run(INCREMENT, grid=1, block=64, args=[x[::2], x[1::2], 20])  # one memory, but no element of it twice
    assert (x[::2] == x[1::2] + 1).all()
    with pytest.raises(ValueError, match="arguments 0 and 1 overlap in memory"):
        run(INCREMENT, grid=1, block=64, args=[x[1:], x[:39], 39])


def test_a_race_through_two_names_of_one_array_is_found() -> None:
    source = "__global__ void shift(float* o, const float* x) { o[threadIdx.x] = x[threadIdx.x + 1]; }"
    x = np.zeros(65, np.float32)
    with checking(ALL_CHECKS), pytest.raises(Race):
        run(source, grid=1, block=64, args=[x, x])


def test_run_looks_for_races_in_global_memory_unless_the_checks_are_named() -> None:
    source = "__global__ void shift(int* x) { int v = x[threadIdx.x + 1]; x[threadIdx.x] = v; }"
    shift = lambda **more: run(source, grid=1, block=64, args=[np.arange(65, dtype=np.int32)], **more)  # noqa: E731
    with pytest.raises(Race, match="race in global memory"):
        shift()
    with pytest.raises(Race, match="race in global memory"):
        shift(checks=["global"])
    shift(checks=["shared"])
    with checking(["shared"]):
        shift()


def test_a_write_to_a_read_only_array_is_reported() -> None:
    out, x = np.zeros(4, np.float32), np.zeros(4, np.float32)
    out.setflags(write=False), x.setflags(write=False)
    with pytest.raises(ValueError, match="written to argument 0, which is a read-only array"):
        run(INCREMENT, grid=1, block=4, args=[out, x, 4])
    run(INCREMENT, grid=1, block=4, args=[np.zeros(4, np.float32), x, 4])


@pytest.mark.parametrize(("grid", "block", "says"), [
    (1, (1, 1, 65), r"the block \(1, 1, 65\) is larger"), (2.0, 1, "grid must be .*2.0"), (1, "xy", "block must be"),
])  # fmt: skip
def test_a_launch_beyond_the_limits_of_gpus_is_refused(grid, block, says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        run("__global__ void k() {}", grid=grid, block=block)


@pytest.mark.parametrize("words", [12288, 12289])
def test_a_kernel_that_declares_more_shared_memory_than_a_block_may_is_refused(words: int) -> None:
    source = "__global__ void k(int* x) { __shared__ int s[WORDS]; s[x[0]] = 3; x[1] = s[x[0]]; }"
    x = np.array([words - 1, 0], np.int32)
    if words > 12288:
        with pytest.raises(LaunchError, match="declares 49156 bytes of shared memory; a block may declare 49152"):
            run(source, grid=1, block=1, args=[x], options=[f"-DWORDS={words}"])
    else:
        run(source, grid=1, block=1, args=[x], options=[f"-DWORDS={words}"])
    assert x[1] == (3 if words == 12288 else 0)


def test_run_reports_missing_files_kernels_and_bad_symbols() -> None:
    with pytest.raises(FileNotFoundError, match=r"no file missing\.cu"):
        run("missing.cu", grid=1, block=1)
    with pytest.raises((CompileError, KernelNotFound), match="nothing"):
        run(SAXPY, "nothing", grid=1, block=1)
    with pytest.raises(ValueError, match="several kernels; name one"):
        run(SAXPY + SAXPY.replace("saxpy", "other"), grid=1, block=1)
    with pytest.raises(ValueError, match="has no kernel; name the template"):
        run("template <int n> __global__ void k(int* o) { *o = n; }", grid=1, block=1)
    with pytest.raises(CompileError, match="undefined"):
        run("__global__ void k() { nowhere(); }", grid=1, block=1)
    with pytest.raises(ValueError, match="shift has 4 bytes, 8 given"):
        run(
            SEVERAL, "scale<float, 1>", grid=1, block=1, args=[np.zeros(1), np.zeros(1)], symbols={"shift": np.zeros(1)}
        )


def test_after_an_error_arrays_hold_what_the_kernel_wrote() -> None:
    source = "__global__ void k(int* o) { o[0] = 7; o[threadIdx.x] = 1; }"
    out = np.zeros(16, np.int32)
    with pytest.raises(OutOfBounds, match=r"kernel\.cu:1"):
        run(source, grid=1, block=32, args=[out])
    assert out[0] == 7
    with pytest.raises(UnsupportedInstruction, match="not supported"):
        run('__global__ void k() { asm volatile("tcgen05.wait::ld.sync.aligned;"); }', grid=1, block=32)


MERGED = """
__global__ void merged(const float* __restrict__ in, float* out) {
    __shared__ float s[32][32];
    for (int k = 0; k < 32; ++k) s[k][threadIdx.x] = in[threadIdx.x * 32 + k];
    __syncthreads();
    float sum = 0;
    #pragma unroll
    for (int k = 0; k < 32; ++k)
        sum += s[threadIdx.x][k];
    out[threadIdx.x] = sum;
}
"""


def test_only_the_merged_load_is_marked() -> None:
    """32 neighbouring loads of 4 bytes become eight of 16; the store of the result does not change."""
    result = run(MERGED, grid=1, block=32, args=[np.ones(1024, np.float32), np.zeros(32, np.float32)])
    found = {(mark.line, mark.kind): mark for mark in result.counters.marks if mark.changes}
    assert found[9, "shared load"].sass == {16: 8}
    assert found[9, "shared load"].ptx == {4: 32}
    assert (10, "global store") not in found
    text = str(result)
    assert "9*  shared load" in text
    assert "line 9, shared load: merged into accesses of 16 bytes (PTX 32 x 4 B; SASS 8 x 16 B)" in text


def test_a_kernel_without_marks_has_none_in_its_report() -> None:
    result = run(SAXPY, grid=1, block=32, args=[32, 1, np.zeros(32, np.float32), np.zeros(32, np.float32)])
    assert result.counters.marks == ()
    assert "*  " not in str(result)


def test_an_unrolled_loop_is_not_marked() -> None:
    source = """__global__ void total(const float* x, float* o, int n) { float s = 0;
    for (int i = threadIdx.x; i < n; i += 32)
        s += x[i];
    o[threadIdx.x] = s; }"""
    result = run(source, grid=1, block=32, args=[np.ones(256, np.float32), np.zeros(32, np.float32), 256])
    assert not any(mark.changes for mark in result.counters.marks)
    assert any(mark.sass[4] > mark.ptx[4] for mark in result.counters.marks)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "saxpy.cu"
    path.write_text(SAXPY)
    return str(path)


def test_the_command_prints_the_report_and_saves_arrays(file, tmp_path, capsys) -> None:
    saved = tmp_path / "y.npy"
    code = main(["emulate", file, "--kernel", "saxpy", "--grid", "4", "--block", "256", "--arg", "1024", "--arg", "2.0",
                 "--arg", "x:float32:1024:range", "--arg", "y:float32:32x32:ones", "--show", "3",
                 "--save", f"y={saved}"])  # fmt: skip
    shown = capsys.readouterr().out
    assert code == 0
    assert "y (float32, 32x32): 1 3 5 ... (1021 more)" in shown
    assert "4 sectors" in shown
    assert (np.load(saved).ravel() == 2 * np.arange(1024) + 1).all()
    again = ["--grid", "1", "--block", "32", "--arg", "32", "--arg", "1", "--arg", f"x:float32:32x32:{saved}"]
    assert main(["emulate", file, *again, "--arg", "y:float32:32"]) == 0


def test_the_command_runs_as_a_program(file) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "climb", "emulate", file, "--grid", "1", "--block", "64", "--arg", "64", "--arg", "1",
         "--arg", "x:float32:32:random", "--arg", "y:float32:64"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert done.returncode == 3
    assert "out of bounds" in done.stderr
    assert "Traceback" not in done.stderr
    assert "saxpy.cu:4" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--grid", "0", "--block", "1"], "'0' is not an extent"),
        (["--grid", "1x1x1x1", "--block", "1"], "is not an extent"),
        (["--grid", "1", "--block", "many"], "'many' is not an extent"),
        (["--arg", "ten"], "--arg ten: expected a number, or NAME:TYPE:SHAPE"),
        (["--arg", "x:float32"], "--arg x:float32: expected a number, or NAME:TYPE:SHAPE"),
        (["--arg", "x:float33:4"], "'float33' is not a NumPy dtype"),
        (["--arg", "x:str:4"], "expected a numeric type, not 'str'"),
        (["--arg", "x:int32:4y4"], "'4y4' is not a shape"),
        (["--arg", "x:int32:4:chaos"], "'chaos' is neither zeros, ones, range, random nor a .npy file"),
        (["--arg", "x:int32:4:no.npy"], "no file no.npy"),
        (["--arg", "1", "--save", "y=a.npy"], "expected NAME=FILE"),
        (["--arg", "1"], "saxpy takes 4 arguments, 1 given"),
        (["--kernel", "saxby"], "saxby"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(file, capsys, arguments, says) -> None:
    given = [*arguments, *(["--grid", "1"] if "--grid" not in arguments else [])]
    given += ["--block", "32"] if "--block" not in arguments else []
    assert main(["emulate", file, *given]) in (1, 2)
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.out == ""


def test_the_command_reports_a_missing_file(capsys) -> None:
    assert main(["emulate", "nowhere.cu", "--grid", "1", "--block", "1"]) == 2
    assert "no file nowhere.cu" in capsys.readouterr().err


def test_the_command_reports_compile_errors(tmp_path, capsys) -> None:
    path = tmp_path / "wrong.cu"
    path.write_text("__global__ void k(float* x) { x[0] = y; }\n")
    assert main(["emulate", str(path), "--grid", "1", "--block", "1", "--arg", "x:float32:1"]) == 1
    assert 'identifier "y" is undefined' in capsys.readouterr().err


def test_marks_compare_copies_and_matrix_loads() -> None:
    """cp.async is a global load and a shared store; ldmatrix reads rows of 16 bytes."""
    source = """#include <cuda_pipeline_primitives.h>
__global__ void k(const float4* in, float* out, unsigned at) {
    __shared__ float4 s[32];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    unsigned a, b;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(a), "=r"(b) : "r"(unsigned(__cvta_generic_to_shared(&s[threadIdx.x % 16]))));
    out[threadIdx.x] = __uint_as_float(a ^ b);
}"""
    args = [np.zeros((32, 4), np.float32), np.zeros(32, np.float32), 0]
    result = run(source, grid=1, block=32, args=args)
    assert {name.mnemonic for name in disassemble(result.compiled, result.compiled.kernels[0])} >= {"LDGSTS", "LDSM"}
    assert result.counters.marks == ()
