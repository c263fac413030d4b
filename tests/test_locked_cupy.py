"""The functions of CuPy that need a library missing from requirements.txt, asked of CuPy itself, without a GPU."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tools import locked_cupy

from climb import fake_cupy
from climb.bench import cuda

LOCK = Path(__file__).parents[1] / "requirements.txt"

#: Calls functions of CuPy on arrays that lie in the memory of the host. CuPy loads a library before it computes, and
#: without a driver it computes nothing: ImportError is the answer of a function that needs a library.
CHILD = """
import ctypes, json, sys
import cupy, locked_cupy

locked_cupy.refuse_libraries(cupy)
kept = []

def allocate(size):
    kept.append(ctypes.create_string_buffer(max(size, 1)))
    memory = cupy.cuda.UnownedMemory(ctypes.addressof(kept[-1]), size, kept[-1], 0)
    return cupy.cuda.MemoryPointer(memory, 0)

def error_of(function, arguments):
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__
    return ""

cupy.cuda.set_allocator(allocate)
answer = {}
for kind in ("f4", "i4"):
    a = cupy.ndarray((2, 2), kind)
    for name in json.loads(sys.argv[1]):
        errors = [error_of(getattr(cupy, name), (a,) * count) for count in (1, 2)]
        answer.setdefault(name, []).extend(errors)
    answer.setdefault("@", []).append(error_of(lambda left, right: left @ right, (a, a)))
answer["fft"] = [error_of(cupy.fft.fft, (a,))]
answer["random"] = [error_of(lambda: cupy.cuda.curand, ())]
print(json.dumps(answer))
"""


@pytest.fixture(scope="module")
def errors() -> dict[str, list[str]]:
    """The errors that each function of the stand-in raises on CuPy without its libraries; "@" is the operator."""
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("CuPy is not installed")
    if not cuda.missing_gpu():
        pytest.skip("with a GPU, kernels would run on addresses of the host")
    command = [sys.executable, "-c", CHILD, json.dumps(sorted(fake_cupy._FUNCTIONS))]
    folder = Path(locked_cupy.__file__).parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_functions_of_the_stand_in_that_need_a_library_are_named(errors):
    found = {name for name, raised in errors.items() if "ImportError" in raised and name in fake_cupy._FUNCTIONS}
    assert found == set(locked_cupy.NEEDS)


def test_product_operator_transforms_and_random_numbers_need_a_library(errors):
    assert errors["@"] == ["ImportError", "ImportError"]
    assert errors["fft"] == errors["random"] == ["ImportError"]


def test_lock_brings_none_of_the_refused_libraries():
    lock = LOCK.read_text(encoding="utf-8").lower()
    assert "nvidia-cuda-nvrtc-cu12==" in lock
    assert [name for name in locked_cupy.LIBRARIES if f"nvidia-{name.lower()}" in lock or f"\n{name}-" in lock] == []
