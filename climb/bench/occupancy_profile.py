"""The occupancy that Nsight Compute reported for many launches, beside the theoretical one."""

from __future__ import annotations

from dataclasses import dataclass

from climb.bench import records
from climb.bench.problem import size_label
from climb.bench.records.kinds import OccupancyRecord, ProfiledLaunch
from climb.toolchain.occupancy import Occupancy, occupancy_of


@dataclass(frozen=True)
class Profiled:
    """One launch as Nsight Compute saw it on a GPU.

    ``counts`` are by the names under ``metrics`` in the record: registers per thread, bytes of shared memory, the block
    limit of each resource, theoretical and achieved occupancy in percent, nanoseconds under the profiler.
    """

    label: str
    ladder: str
    rung: str
    size: dict[str, int]
    counts: dict[str, int | float]

    @property
    def limits(self) -> dict[str, int]:
        """The blocks that each resource allows, by the names that ``Occupancy.limits`` uses."""
        of = {"warps": "warps", "blocks": "sm", "registers": "registers", "shared memory": "shared"}
        return {name: int(self.counts[f"blocks_by_{key}"]) for name, key in of.items()}

    def theory(self, *, as_configured: bool = False) -> Occupancy:
        """The theoretical occupancy of the launch, from the registers and shared memory that the profiler saw.

        ``as_configured`` uses the carve-out that the driver had chosen for the launch.
        """
        c = self.counts
        shared = int(c["static_shared"] + c["dynamic_shared"])
        carveout = int(c["shared_configured"]) if as_configured else None
        return occupancy_of(int(c["registers"]), shared, int(c["block"]), carveout=carveout)


@dataclass(frozen=True)
class Profile:
    """The occupancy of many launches on one GPU, as ``climb occupancy`` measured it."""

    gpu: str
    date: str
    tool: str
    points: tuple[Profiled, ...]

    def at(self, ladder: str, rung: str, **size: int) -> Profiled:
        """The launch of a rung at a size. Raises LookupError."""
        for point in self.points:
            if (point.ladder, point.rung, point.size) == (ladder, rung, size):
                return point
        raise LookupError(f"ncu was not asked about {ladder} {rung} at {size_label(size)}")


def occupancy_profile(gpu: str = records.DEFAULT_GPU) -> Profile:
    """Read the committed profile of occupancy. Raises FileNotFoundError if there is none, and RecordError."""
    place = "profiles/occupancy.json"
    found = records.load(records.RECORDS / records.gpu_with(place, gpu) / place, OccupancyRecord)
    return Profile(found.device["name"], found.date, found.tool, tuple(map(_profiled, found.points)))


def _profiled(point: ProfiledLaunch) -> Profiled:
    return Profiled(point.label, point.ladder, point.rung, point.size, point.counts)
