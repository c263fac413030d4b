"""Chapters' kernels are forks: quick to start, as independent as other processes, and their CPU time is counted."""

from __future__ import annotations

import ast
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tools import bill, warm_kernels

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone"),
    pytest.mark.emulated,
]

#: Prints how many threads multiply matrices, for each copy of OpenBLAS that NumPy has loaded.
_COUNT_THREADS = """
import ctypes, numpy
from pathlib import Path
rows = Path("/proc/self/maps").read_text().splitlines()
loaded = {row.split(maxsplit=5)[5] for row in rows if "libscipy_openblas64_" in row}
print([ctypes.CDLL(path).scipy_openblas_get_num_threads64_() for path in loaded])
"""


@pytest.fixture(scope="module")
def start():
    """A function that starts a kernel as nbval does, in a folder, and ends it after the tests."""
    from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel

    warm_kernels.install()
    running = []

    def start(folder: str = ".") -> RunningKernel:
        running.append(RunningKernel(CURRENT_ENV_KERNEL_NAME, cwd=folder))
        return running[-1]

    yield start
    for kernel in running:
        kernel.stop()


def printed(kernel, code: str) -> str:
    """Return what the code prints."""
    request = kernel.kc.execute(code)
    text = ""
    while True:
        message = kernel.get_message("iopub", timeout=30)
        if message["parent_header"].get("msg_id") == request:
            text += message["content"].get("text", "")
            if message["content"].get("execution_state") == "idle":
                return text.strip()


def test_kernel_has_its_modules_folder_and_environment(start, tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMB_TEST_OF_KERNELS", "here")
    kernel = start(str(tmp_path))
    assert isinstance(kernel.km.provisioner.process, warm_kernels.Kernel)
    code = "import os, sys; print('climb.display' in sys.modules, os.getcwd(), os.environ['CLIMB_TEST_OF_KERNELS'])"
    assert printed(kernel, code) == f"True {tmp_path} here"
    assert printed(kernel, "print('climb' in globals(), __name__)") == "False __main__"
    folders = ast.literal_eval(printed(kernel, "print(sys.path)"))
    assert not {str(warm_kernels.ROOT), os.path.dirname(warm_kernels.__file__)} & set(folders)


def test_kernel_refuses_what_requirements_txt_brings_no_library_for(start):
    code = (
        "from climb import cp\nm = cp.ones((2, 2))\nprint((m + m).sum())\ntry: m @ m\nexcept ImportError as e: print(e)"
    )
    assert printed(start(), code).startswith("8.0\nCuPy's matmul needs cuBLAS")


@pytest.mark.parametrize(("failures", "starts"), [(0, 1), (2, 3), (9, 3)])
def test_a_kernel_that_dies_at_once_is_started_again_twice(monkeypatch, failures, starts):
    from nbval import kernel

    tried = []

    def start(name):
        tried.append(name)
        if len(tried) <= failures:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return "a manager", "a client"

    monkeypatch.setattr(kernel, "start_new_kernel", start)
    warm_kernels.persist()
    if failures < 3:
        assert kernel.start_new_kernel("python") == ("a manager", "a client")
    else:
        with pytest.raises(RuntimeError, match="Kernel died"):
            kernel.start_new_kernel("python")
    assert tried == ["python"] * starts


def test_no_idle_threads_wait_for_products_of_matrices_in_tests_and_kernels(start, capsys):
    exec(_COUNT_THREADS, {})
    own = capsys.readouterr().out.strip()
    assert own in ("[1]", "[]"), "set before NumPy is imported; [] where NumPy has another library"
    assert printed(start(), _COUNT_THREADS) == own


def test_what_one_kernel_changes_no_other_sees(start):
    first, second = start(), start()
    printed(first, "import climb.paths; climb.paths.ROOT = 'changed'")
    assert printed(first, "print(climb.paths.ROOT)") == "changed"
    assert printed(second, "import climb.paths; print(climb.paths.ROOT)") != "changed"


def test_cpu_time_and_exit_status_of_a_kernel_are_known_when_it_has_ended(tmp_path):
    server, before = warm_kernels.server(), bill.cpu_seconds()
    both = (["-f", str(tmp_path / "connection.json")], ["--no-such-option"])
    runs, fails = (warm_kernels.Kernel(server, server.fork(command, ".", dict(os.environ))) for command in both)
    assert os.getpgid(runs.pid) == runs.pid, "a signal to its group reaches it alone"
    runs.kill()
    assert [kernel.wait(timeout=60) for kernel in (runs, fails)] == [-signal.SIGKILL, 2]
    assert bill.cpu_seconds() > before


def test_kernel_ends_with_the_server_however_that_ends(tmp_path):
    server = warm_kernels.Server()
    pid = server.fork(["-f", str(tmp_path / "connection.json")], ".", dict(os.environ))
    while not (tmp_path / "connection.json").exists():
        time.sleep(0.05)
    server.process.kill()
    server.process.wait()
    with pytest.raises(RuntimeError, match="has ended"):
        server.fork([], ".", {})
    server.close()
    for _ in range(600):
        if not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1][:3]:
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the kernel outlived the process that forked it")
