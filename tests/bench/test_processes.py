"""Processes that measure end with the process that started them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from climb.bench import processes

ROOT = Path(__file__).resolve().parents[2]
CHILD = """
import os, time
from climb.bench.processes import end_with_parent
end_with_parent()
os.write({pipe}, b"%d " % os.getpid())
time.sleep(600)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], close_fds=False)"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems tell no process that its parent has died")
def test_a_child_is_killed_with_its_parent() -> None:
    reads, writes = os.pipe()
    os.set_inheritable(writes, True)
    command = [sys.executable, "-c", PARENT, CHILD.format(pipe=writes)]
    parent = subprocess.Popen(command, cwd=ROOT, close_fds=False)
    os.close(writes)
    child = int(os.read(reads, 16))
    parent.kill()
    parent.wait()
    ended, _, _ = select.select([reads], [], [], 60)  # the pipe ends when nobody holds its other end any more
    if not ended:
        os.kill(child, signal.SIGKILL)
    os.close(reads)
    assert ended


@pytest.mark.parametrize(("platform", "asked"), [("linux", [(1, signal.SIGKILL)]), ("darwin", []), ("win32", [])])
def test_only_linux_is_asked_for_it(monkeypatch, platform, asked) -> None:
    calls: list[tuple[int, int]] = []
    library = types.SimpleNamespace(prctl=lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(processes.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(processes.sys, "platform", platform)
    processes.end_with_parent()
    assert calls == asked
