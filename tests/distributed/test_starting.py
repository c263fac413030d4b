"""The start of ranks: they find each other, and a run ends if one of them dies or hangs."""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from climb.cli import main
from climb.distributed import launcher as launch
from climb.distributed.environment import NotStarted, Started, started
from climb.distributed.plan import Place
from climb.distributed.rendezvous import Unmatched, meet


class TestEnvironment:
    @pytest.mark.parametrize(
        ("variables", "rank", "local", "port"),
        [
            ({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_PORT": "400"}, 3, 1, 401),
            (
                {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
                3,
                1,
                29531,
            ),
            ({"PMI_RANK": "3", "PMI_SIZE": "4"}, 3, 3, 29531),
            ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}, 3, 0, 29531),
        ],
    )
    def test_every_starter_says_which_rank(self, variables: dict[str, str], rank: int, local: int, port: int) -> None:
        found = started(variables)
        assert (found.place, found.local, found.port) == (Place(rank, 4), local, port)

    def test_process_by_itself_is_the_only_rank(self) -> None:
        assert started({}).place == Place(0, 1)

    def test_contradicting_variables_are_refused(self) -> None:
        with pytest.raises(NotStarted, match="RANK=4, WORLD_SIZE=4: rank 4 of 4"):
            started({"RANK": "4", "WORLD_SIZE": "4"})
        with pytest.raises(NotStarted, match=r"RANK is set, as python -m climb.launch or torchrun does, but not"):
            started({"RANK": "0"})

    def test_host_of_rank_0(self) -> None:
        assert started({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "node7"}).host == "node7"
        slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1"}
        assert started(slurm).host == "10.0.0.1"


class TestRendezvous:
    @staticmethod
    def together(whats: list[dict[str, Any]], ranks: int, patience: float = 5.0) -> list[Any]:
        """Return what each rank of a meeting gets, an Unmatched if it is refused."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        results: list[Any] = [None] * len(whats)

        def one(rank: int) -> None:
            try:
                how = Started(Place(rank, ranks), rank, port=port)
                results[rank] = meet(how, whats[rank], lambda: [1, 2], patience)
            except Unmatched as refused:
                results[rank] = refused

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(whats))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def test_all_ranks_get_what_rank_0_made(self) -> None:
        assert self.together([{"size": 4}] * 3, 3) == [[1, 2]] * 3

    def test_ranks_that_run_different_things_are_all_refused(self) -> None:
        for refused in self.together([{"size": 4}, {"size": 5}], 2):
            assert "rank 0 {'size': 4}, rank 1 {'size': 5}" in str(refused)

    def test_rank_that_does_not_come_is_named(self) -> None:
        zero, one = self.together([{}, {}], 3, patience=0.5)
        assert str(zero) == str(one) == "after 0 s rank 2 of 3 had not come"


class TestLaunch:
    @staticmethod
    def run(text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
        """Status and error output of a program of two processes."""
        (tmp_path / "program.py").write_text(
            "import json, os, pathlib, sys, time\nrank = int(os.environ['RANK'])\n"
            "def says(what, waits, ago=0):\n"
            "    text = json.dumps({'what': what, 'waits': waits, 'since': time.time() - ago})\n"
            "    path = pathlib.Path(os.environ['CLIMB_STATUS'], f'{rank}.json')\n"
            "    path.with_suffix('.new').write_text(text)\n"
            "    path.with_suffix('.new').replace(path)\n"
            "def wait_to_be_ended():\n"
            "    time.sleep(30)\n"
            "    pathlib.Path(__file__).with_name('outlived').touch()\n" + text,
            encoding="utf-8",
        )
        status = main(["launch", "--processes", "-n", "2", *options, str(tmp_path / "program.py")])
        return status, capfd.readouterr().err

    def test_ranks_that_end_well(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        status, said = self.run("pathlib.Path(__file__).with_name(str(rank)).touch()", tmp_path, capfd)
        assert (status, said) == (0, "") and {"0", "1"} <= {one.name for one in tmp_path.iterdir()}

    def test_ranks_can_import_climb_wherever_their_program_lies(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
        monkeypatch.chdir(tmp_path)
        text = "from importlib.util import find_spec\nsys.exit(find_spec('climb') is None)"
        assert self.run(text, tmp_path, capfd)[0] == 0

    def test_rank_that_dies_ends_all(self, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
        monkeypatch.setattr(launch, "GRACE", 0.2)
        text = "says('sample 3', rank == 0)\nsys.exit(3) if rank else wait_to_be_ended()"
        status, said = self.run(text, tmp_path, capfd)
        assert status == 3 and not (tmp_path / "outlived").exists()
        assert "rank 1 ended with status 3; all ranks are ended" in said
        assert "rank 0 was running; it waited in: sample 3" in said

    def test_rank_that_was_killed_is_named(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(launch, "GRACE", 0.2)
        status, said = self.run("os.kill(os.getpid(), 9) if rank else wait_to_be_ended()", tmp_path, capfd)
        assert status == 1 and not (tmp_path / "outlived").exists() and "rank 1 was killed by SIGKILL" in said

    def test_rank_that_hangs_is_named(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        text = (
            "if rank == 1: says('a loop', False)\n"
            "while not pathlib.Path(os.environ['CLIMB_STATUS'], '1.json').exists(): time.sleep(0.01)\n"
            "if rank == 0: says('halos', True, ago=9)\n"
            "wait_to_be_ended()"
        )
        status, said = self.run(text, tmp_path, capfd, "--silence", "5")
        assert status == 1 and not (tmp_path / "outlived").exists()
        assert "rank 1 did not come; all ranks are ended" in said
        assert "rank 1 was running; it last did: a loop" in said

    @pytest.mark.emulated
    def test_without_a_gpu_ranks_are_threads(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program = tmp_path / "program.py"
        program.write_text(
            "import sys\nfrom climb.distributed.rank import connect\n"
            "rank = connect({'run': 1})\n"
            "if sys.argv[1] == 'fail' and rank.place.rank == 1: raise ValueError('planted')\n"
            "print(rank.place.rank, rank.comm.size(), rank.device.id)\n",
            encoding="utf-8",
        )
        monkeypatch.setattr(sys, "argv", [])
        monkeypatch.setattr(sys, "path", [*sys.path])
        assert main(["launch", "-n", "3", str(program), "well"]) == 0
        assert sorted(capfd.readouterr().out.splitlines()) == ["0 3 0", "1 3 1", "2 3 0"]
        assert main(["launch", "-n", "3", str(program), "fail"]) == 1
        assert "ValueError: planted" in capfd.readouterr().err

    def test_status_is_written_whole(self, tmp_path: Path) -> None:
        (tmp_path / "1.json").write_text(json.dumps({"what": "x", "waits": True, "since": 0.0}), encoding="utf-8")
        assert launch._said(tmp_path)[1]["what"] == "x"
