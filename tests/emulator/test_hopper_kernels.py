"""Whole kernels of Hopper: their results, and that each planted mistake is found."""

from __future__ import annotations

import re
from dataclasses import replace

import hopper_kernels
import numpy as np
import pytest
from hopper_kernels import Tensor, emulate
from tools.thorough import first_of_each

from climb.emulator import (
    AsyncMisuse,
    AsyncRace,
    BarrierDivergence,
    BarrierMisuse,
    Deadlock,
    EmulatorError,
    Misaligned,
    MissingProxyFence,
    OutOfBounds,
    Race,
    UnsupportedInstruction,
    WarpMismatch,
    run,
)
from climb.emulator import Tensor as TensorArgument
from climb.emulator.execution.schedules import Schedule, Schedules
from climb.emulator.memory.tensor_map import TensorMapError

#: Kernel, the text, the text with the mistake, the error that must come, and words of its message.
EXPECT, SYNC, BLOCK_SYNC = "expect(&full, sizeof(in));", "    cluster_sync();\n", "    __syncthreads();\n"
LAST = f"    }}\n{SYNC}"  # of cluster_histogram
ARRIVE, RELAXED, WAIT = (
    f'    asm volatile("barrier.cluster.{how};" ::: "memory");\n' for how in ("arrive", "arrive.relaxed", "wait")
)
PLANTED = [
    ("transpose", EXPECT, "arrive(&full);", AsyncRace, "no wait has seen the phase"),
    ("transpose", EXPECT, "expect(&full, 2048);", Deadlock, "expect_tx of 2048 bytes that have come"),
    ("transpose", EXPECT, "expect(&full, 8192);", Deadlock, "misses 4096 bytes"),
    ("transpose", "wait(&full, 0)", "wait(&full, 1)", AsyncRace, "issued at ptx.cuh"),
    ("transpose", "wait(&full, 0);", "", AsyncRace, "no wait has seen the phase"),
    ("transpose", "wait(&full, 0);", "if (t == 0) wait(&full, 0);", Race, "writes by an asynchronous copy"),
    ("transpose", "init(&full, 1)", "init(&full, 2)", Deadlock, "misses 1 arrival"),
    ("transpose", "init(&full, 1);", "", EmulatorError, "full in shared memory, which nothing has written"),
    ("transpose", "init(&full, 1);", "init(&full, 1); init(&full, 1);", BarrierMisuse, "in use since"),
    ("transpose", "== 0) {\n        init", "< 2) {\n        init", BarrierMisuse, "another thread initialises"),
    ("transpose", "init(&full, 1);", "init(&full, 1); full = 7;", BarrierMisuse, "something else has been stored"),
    ("transpose", "    fence_proxy();\n", "", MissingProxyFence, "transpose.cu:28"),
    ("transpose", "    fence_proxy();\n", "    if (t == 0) fence_proxy();\n", MissingProxyFence, "transpose.cu:28"),
    ("transpose", "        commit();\n        wait_reads();\n", "", AsyncMisuse, "wait_group.read is missing"),
    ("transpose", "load(in, a", "load(in + 4, a", Misaligned, "no multiple of 128"),
    ("transpose", "load(in, a", "load(in + N, a", OutOfBounds, "in in shared memory"),
    ("ring", "wait(&empty[s], ~(k / STAGES) & 1);", "", BarrierMisuse, "more arrivals than its phase has left"),
    ("ring", "~(k / STAGES) & 1", "k / STAGES & 1", Deadlock, "misses 128 arrivals"),
    ("ring", "wait(&full[s], k / STAGES & 1);", "wait(&full[s], 0);", Deadlock, "misses 128 arrivals"),
    ("ring", "arrive(&empty[s]);", "", Deadlock, "misses 1 arrival"),
    ("ring", "expect(&full[s], BYTES);", "arrive(&full[s]);", AsyncRace, "buffer"),
    ("ring", "inc.sync.aligned.u32 232", "inc.sync.aligned.u32 236", UnsupportedInstruction, "multiple of 8"),
    ("ring", "__launch_bounds__(256, 1)", "__launch_bounds__(256, 2)", AsyncMisuse, "setmaxnreg waits for ever"),
    (
        "ring",
        'asm volatile("setmaxnreg.dec',
        'if (t < 96) asm volatile("setmaxnreg.dec',
        WarpMismatch,
        "all four warps",
    ),
    ("cluster_histogram", f"= 0;\n{SYNC}", f"= 0;\n{BLOCK_SYNC}", Race, "no barrier of the cluster"),
    ("cluster_histogram", LAST, LAST.replace(SYNC, BLOCK_SYNC), Race, "no barrier of the cluster"),
    ("cluster_histogram", "bin / PART)", "bin / PART + 1)", OutOfBounds, "rank 2 of a cluster of 2 blocks"),
    # The barrier does not wait for the block that has left, so nothing orders what that has added either.
    (
        "cluster_histogram",
        LAST,
        f"    }}\n    if (cluster_rank() == 0) return;\n{SYNC}",
        Race,
        "no barrier of the cluster",
    ),
    (
        "cluster_histogram",
        LAST,
        f"    }}\n    if (cluster_rank() == 0) {{\n{ARRIVE}    return;\n    }}\n{SYNC}",
        Race,
        "may have left",
    ),
    ("cluster_histogram", LAST, f"    }}\n{ARRIVE}{SYNC}", BarrierDivergence, "twice without waiting"),
    ("cluster_histogram", LAST, f"    }}\n{RELAXED}{WAIT}", Race, "no barrier of the cluster"),
    ("cluster_histogram", LAST, f"    }}\n{WAIT}", BarrierDivergence, "without having arrived"),
    ("multicast", f"{SYNC}    if", f"{BLOCK_SYNC}    if", Race, "full, which thread (0,0,0) of block (1,0,0)"),
    ("multicast", "expect(&full, sizeof(shared));", "expect(&full, 2048);", BarrierMisuse, "names too few bytes"),
    ("multicast", "load_all(shared[rank * HALF]", "load_all(shared[0]", AsyncRace, "another asynchronous copy"),
    ("multicast", "(1 << SIZE) - 1", "4", AsyncMisuse, "multicast mask"),
    ("multicast", "wait(&full, 0);", "", AsyncRace, "no wait has seen the phase"),
    ("bulk_sum", "    fence_proxy();\n", "", MissingProxyFence, "bulk_sum.cu:1"),
    ("bulk_sum", "    __syncthreads();\n", "", Race, "sum"),
    ("bulk_sum", "sizeof(sum));", "sizeof(sum) - 8);", AsyncMisuse, "multiple of 16"),
    ("bulk_sum", "add_out(out,", "add_out(out + 1,", Misaligned, "byte 4 of array 1"),
    ("bulk_sum", "add_out(out,", "add_out(out + 4,", OutOfBounds, "array 1"),
]


def check(example: hopper_kernels.Example, schedule: Schedule | None = None) -> None:
    """Compare the bits of the results with what is expected."""
    arrays, _ = emulate(example, schedule)
    for number, want in zip(example.results, example.expected(*example.arrays), strict=True):
        assert (arrays[number].view(np.uint32) == want.view(np.uint32)).all()


@pytest.mark.parametrize("make", hopper_kernels.ALL, ids=lambda make: make.__name__)
def test_kernel_computes_the_expected_bits(make) -> None:
    check(make())


@pytest.mark.parametrize("make", hopper_kernels.ALL, ids=lambda make: make.__name__)
def test_result_does_not_depend_on_the_schedule(make) -> None:
    for schedule in Schedules(3):
        check(make(), schedule)


@pytest.mark.parametrize(
    ("name", "old", "new", "error", "words"),
    first_of_each(PLANTED, lambda one: one[0], lambda one: one[3], unpack=True),
)
def test_planted_mistake_is_found(name: str, old: str, new: str, error: type, words: str) -> None:
    example = replace(getattr(hopper_kernels, name)(), edits=((old, new),))
    with pytest.raises(error, match=re.escape(words)):
        check(example)


def test_box_of_the_wrong_height_waits_for_ever() -> None:
    example = hopper_kernels.transpose()
    with pytest.raises(Deadlock, match="misses 2048 bytes"):
        emulate(replace(example, args=(Tensor(0, (32, 16), 128), example.args[1])))


def test_swizzle_spreads_a_column_over_eight_banks() -> None:
    _, counters = emulate(hopper_kernels.transpose())
    assert counters.total("tma load").bytes == counters.total("tma store").bytes == 96 * 64 * 4
    assert counters.total("tma load").requests == 6
    loads, stores = counters.total("shared load"), counters.total("shared store")
    assert loads.wavefronts == 4 * loads.requests
    assert stores.wavefronts == stores.requests


def test_run_takes_tensors_and_clusters() -> None:
    values, out = np.arange(64 * 96, dtype=np.float32).reshape(64, 96), np.zeros((96, 64), np.float32)
    args = [TensorArgument(values, (32, 32), 128), TensorArgument(out, (32, 32), 128)]
    result = run(hopper_kernels.FOLDER / "transpose.cu", grid=(3, 2), block=128, args=args, arch="sm_90a", cluster=3)
    assert (out == values.T).all() and result.arrays[1] is out
    assert re.search(r"tma load +4096 +6 +128 sectors", str(result))
    with pytest.raises(TensorMapError, match="at most 128"):
        run(hopper_kernels.FOLDER / "transpose.cu", grid=1, block=128, args=[TensorArgument(values, (32, 64), 128)] * 2)
