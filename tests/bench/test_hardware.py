"""The head of a record: what the driver and nvidia-smi say of the GPU. Both are doubles here."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from climb.bench import hardware


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    """CuPy as far as the head of a record asks it."""
    properties = {"name": b"NVIDIA H200", "major": 9, "minor": 0, "multiProcessorCount": 132, "l2CacheSize": 62914560}
    runtime = SimpleNamespace(getDeviceProperties=lambda device: properties, runtimeGetVersion=lambda: 12090)
    cuda = SimpleNamespace(runtime=runtime, nvrtc=SimpleNamespace(getVersion=lambda: (12, 9)))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(__version__="14.2.0", cuda=cuda))


def says(monkeypatch, text, status=0):
    """Let every command print a text and end with a status. Returns the commands that were run."""
    commands = []

    def run(command, **options):
        commands.append(command)
        return SimpleNamespace(stdout=text, returncode=status)

    monkeypatch.setattr(hardware.subprocess, "run", run)
    return commands


def test_a_record_names_the_gpu_its_software_and_its_clocks(monkeypatch):
    commands = says(monkeypatch, "580.65.06, 1965, 3201, 1980, 3202\n")
    assert hardware.device_block() == {
        "name": "NVIDIA H200",
        "compute_capability": "9.0",
        "sm_count": 132,
        "l2_bytes": 62914560,
        "driver": "580.65.06",
        "cuda": "12.9",
        "nvrtc": "12.9",
        "cupy": "14.2.0",
        "clocks": {"sm_mhz": 1965, "memory_mhz": 3201, "max_sm_mhz": 1980, "max_memory_mhz": 3202},
    }
    ((tool, *_),) = commands
    assert tool == "nvidia-smi"


def test_a_clock_that_the_driver_does_not_know_is_none(monkeypatch):
    says(monkeypatch, "580.65.06, 1965, [N/A], 1980, 3202\n")
    assert hardware.device_block()["clocks"]["memory_mhz"] is None
    assert hardware.device_block()["clocks"]["max_memory_mhz"] == 3202


NOTHING = {"sm_mhz": None, "memory_mhz": None, "max_sm_mhz": None, "max_memory_mhz": None}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("580.65.06, 1965, 3201, 1980, 3202\n", 1),
        ("580.65.06, 1965, 3201, 1980, 3202\n", 9),
        ("580.65.06\n", 0),
        ("", 0),
    ],
    ids=["it fails", "it finds no driver", "it says too little", "it says nothing"],
)
def test_what_nvidia_smi_does_not_say_is_none(text, status, monkeypatch):
    says(monkeypatch, text, status)
    found = hardware.device_block()
    assert (found["driver"], found["clocks"], found["name"]) == (None, NOTHING, "NVIDIA H200")


@pytest.mark.parametrize("error", [FileNotFoundError("nvidia-smi"), subprocess.TimeoutExpired("nvidia-smi", 30)])
def test_without_nvidia_smi_driver_and_clocks_are_none(error, monkeypatch):
    def run(command, **options):
        raise error

    monkeypatch.setattr(hardware.subprocess, "run", run)
    found = hardware.device_block()
    assert (found["driver"], found["clocks"], found["name"]) == (None, NOTHING, "NVIDIA H200")


def test_a_commit_that_git_does_not_know_is_unknown(monkeypatch):
    monkeypatch.delenv("WORKLOG_COMMIT", raising=False)
    says(monkeypatch, "fatal: not a git repository\n", 128)
    assert hardware.commit() == "unknown"


def test_a_board_that_is_chosen_by_the_environment_is_asked_for_by_its_address(monkeypatch):
    commands = says(monkeypatch, "GPU-1\n")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(
        sys.modules["cupy"].cuda.runtime, "deviceGetPCIBusId", lambda n: f"0000:{n + 27:X}:00.0", raising=False
    )
    hardware.board()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    hardware.board()
    assert [command[:3] for command in commands] == [
        ("nvidia-smi", "-i", "0"),
        ("nvidia-smi", "-i", "0000:1B:00.0"),
    ]
