"""Rungs that wait for a GPU: tests of counts and times that only a GPU gives leave them out."""

from __future__ import annotations

from climb import MissingRecord, load_ladder, load_record

#: Ladders and rungs that were timed on a GPU, but not yet counted there, or that wait for both. Once `climb record
#: --only agreement` has run, this set shrinks.
TO_COUNT: set[str] = set()

#: Ladders with counted rungs that some tool of compute-sanitizer has not run to the end.
TO_SANITIZE: set[str] = set()

#: Ladders with a rung that is new or has changed since compute-sanitizer ran them.
TO_SANITIZE_AGAIN: set[str] = set()

#: Ladders with a rung that is new or has changed since the newer version of compute-sanitizer ran them, on an H100.
TO_SANITIZE_NEWER = {
    "chain", "classifier_f16", "classifier_tensor", "convlayer_f16", "convlayer_tensor", "fft_conv3d", "fft_crossover",
    "hgemm", "tgemm", "unet",
}  # fmt: skip

#: Ladders of REPORTED that have changed since the newer version ran them: the older one alone has run today's code.
REPORTED_BY_OLDER = {"classifier_tensor", "unet"}

#: Rungs that have changed since they were profiled on an H100.
TO_PROFILE_THERE = {("classifier_tensor", "slabs"), ("unet", "dependent")}

#: Ladders of which racecheck or synccheck of version 2026.4 report hazards between warps that wait at mbarriers or at
#: named barriers, where the emulator finds none. Who is right is not settled, as the chapter on the emulator says.
REPORTED = {"classifier_tensor", "convlayer_f16", "convlayer_tensor", "tgemm", "unet", "unet_f16"}


def pending(name: str) -> set[str]:
    """The rungs of a ladder that its record has no point of; none where the ladder has no record at all."""
    try:
        measured = {point.name for point in load_record(name).points}
    except MissingRecord:
        return set()
    return set(load_ladder(name).names) - measured
