"""Chapters' kernels, forked from a process that has already imported what every chapter imports.

A kernel of Jupyter spends more than a second of CPU on imports before it runs the first cell. Here each process that
runs tests keeps one process, the server, which imports once and then does nothing but fork: a forked kernel is as new
as any other, only its modules are already in memory. The server runs as ``python warm_kernels.py``.

:func:`install` makes Jupyter start its kernels this way, on Linux and where kernels of the book run on the emulator: a
fork may not inherit a CUDA context.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
#: What chapters use besides the public names of `climb`.
_PRELOADED = (
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
    "matplotlib.backends.backend_agg",
    "pygments.lexers.c_cpp",
)
#: CPU seconds of the kernels that have ended, which no clock of this process sees while the server lives.
spent = 0.0


class Server:
    """The process that forks kernels, and what it reports of them."""

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._ended: dict[int, int] = {}

    def fork(self, command: Sequence[str], cwd: str | None, environ: dict[str, str]) -> int:
        """Start a kernel and return its process identifier."""
        request = json.dumps({"arguments": list(command), "cwd": cwd or os.getcwd(), "environ": environ})
        with contextlib.suppress(BrokenPipeError):  # `_read` says what that means
            self.process.stdin.write(request + "\n")  # type: ignore[union-attr] (it is a pipe)
            self.process.stdin.flush()  # type: ignore[union-attr]
        while "started" not in (report := self._read()):
            pass
        return report["started"]

    def code(self, pid: int) -> int | None:
        """The exit status of a kernel, negative for a signal; None if it still runs."""
        while pid not in self._ended and select.select([self.process.stdout], [], [], 0)[0]:
            self._read()
        return self._ended.get(pid)

    def close(self) -> None:
        """End the server and all kernels that still run."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()
        self.process.stdout.close()  # type: ignore[union-attr]

    def _read(self) -> dict[str, Any]:
        """One report of the server. The pipe is read byte by byte, so that `select` sees what is left in it."""
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self.process.stdout.fileno(), 1)  # type: ignore[union-attr]
            if not byte:
                raise RuntimeError("the process that forks the chapters' kernels has ended")
            line += byte
        report = json.loads(line)
        if "ended" in report:
            global spent
            spent += report["cpu"]
            self._ended[report["ended"]] = report["code"]
        return report


class Kernel:
    """A forked kernel, with the methods of `subprocess.Popen` that Jupyter calls."""

    stdin = stdout = stderr = None

    def __init__(self, server: Server, pid: int) -> None:
        self._server, self.pid = server, pid

    def poll(self) -> int | None:
        return self._server.code(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("a chapter's kernel", timeout)  # type: ignore[arg-type]
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_server: Server | None = None


def server() -> Server:
    """The server of this process, started when it is first asked for."""
    global _server
    if _server is None:
        _server = Server()
    return _server


def install() -> None:
    """Make Jupyter's kernels forks of a server, which starts with the first of them."""
    from jupyter_client.provisioning import local_provisioner

    plain = local_provisioner.launch_kernel
    if plain.__module__ == __name__:
        return

    def launch_kernel(cmd: list[str], **options: Any) -> Any:
        from climb.bench import cuda

        if sys.platform != "linux" or cuda.backend != "emulator" or "ipykernel_launcher" not in cmd:
            return plain(cmd, **options)
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        environ = options.get("env") or dict(os.environ)
        return Kernel(server(), server().fork(arguments, options.get("cwd"), environ))

    local_provisioner.launch_kernel = launch_kernel


def persist(attempts: int = 3) -> None:
    """Make nbval start a kernel again that dies at once: kernels that start at the same time may have drawn the same
    port."""
    from nbval import kernel

    start = kernel.start_new_kernel
    if start.__module__ == __name__:
        return

    def start_new_kernel(*args: Any, **options: Any) -> Any:
        for _ in range(attempts - 1):
            with contextlib.suppress(RuntimeError):
                return start(*args, **options)
        return start(*args, **options)

    kernel.start_new_kernel = start_new_kernel


def close() -> None:
    """End the server, if one runs."""
    global _server
    if _server is not None:
        _server.close()
        _server = None


def _preload() -> None:
    """Import what chapters import, and leave the path of imports as a new kernel has it.

    What a cell needs beyond requirements.txt fails here, although the stand-in for CuPy could compute it.
    """
    locked_cupy = importlib.import_module("locked_cupy")
    del sys.path[0]  # this file's folder
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as ipykernel does
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # ipykernel reads it now; a kernel ends when this process is gone
    sys.path.insert(0, str(ROOT))
    for name in _PRELOADED:
        importlib.import_module(name)
    climb = importlib.import_module("climb")
    for name in climb.__all__:
        getattr(climb, name)
    locked_cupy.refuse_libraries(climb.cp)
    del sys.path[0]


def _become_a_kernel(request: dict[str, Any]) -> None:
    """Go on as ``python -m ipykernel_launcher`` would.

    Figures are shown as SVG from the start, as in a notebook whose first cell has imported `climb`.
    """
    from ipykernel.kernelapp import IPKernelApp

    from climb.display import style

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["ipykernel_launcher.py", *request["arguments"]]
    kernel = IPKernelApp.instance()
    kernel.initialize()
    style.use_in_notebook()
    kernel.start()


def _report(stream: IO[str], **facts: Any) -> None:
    stream.write(json.dumps(facts) + "\n")
    stream.flush()


def _reap(running: set[int]) -> None:
    """Report the kernels that have ended."""
    for pid in list(running):
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if ended:
            running.discard(pid)
            cpu = usage.ru_utime + usage.ru_stime
            _report(sys.stdout, ended=pid, code=os.waitstatus_to_exitcode(status), cpu=cpu)


def serve() -> None:
    """Fork a kernel for each request on standard input, until that is closed."""
    _preload()
    gc.collect()
    gc.freeze()  # or the first search for garbage would copy every page into the kernel
    gc.set_threshold(100_000, 50, 100)  # as for the tests: a chapter keeps most of what it makes
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: set[int] = set()
    while True:
        ready = select.select([0, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
        _reap(running)
        if 0 not in ready:
            continue
        line = sys.stdin.readline()
        if not line:
            break
        pid = os.fork()
        # A group of its own: a signal to it reaches what the kernel has started, and nothing else.
        os.setpgid(pid, pid)
        if pid == 0:
            os.close(woken)
            os.close(wake)
            _become_a_kernel(json.loads(line))
            sys.exit()
        running.add(pid)
        _report(sys.stdout, started=pid)
    for pid in running:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    serve()
