"""Graphs: Gunrock, GAP, ECL."""

from __future__ import annotations

import numpy as np

from climb.emulator import OutOfBounds, Race

from .program import WRONG, Project, Steps, close, empty, exact, integers, launch, words

Random = np.random.Generator
gunrock = Project("gunrock/gunrock", "graphs")
gapbs = Project("sbeamer/gapbs", "graphs")
ecl = Project("burtscher/ECL-Suite", "graphs")
N, FAR = 90, 1 << 30


def graph(rng: Random, chance: float = 0.05) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the symmetric adjacency matrix, the first edge of each vertex, the ends of the edges."""
    upper = np.triu(rng.random((N, N)) < chance, 1)
    near = upper | upper.T
    first = np.cumsum([0, *near.sum(1)]).astype(np.int32)
    return near, first, np.nonzero(near)[1].astype(np.int32)


def levels(near: np.ndarray) -> np.ndarray:
    found, front, depth = np.full(N, -1, np.int32), np.arange(N) == 0, 0
    while front.any():
        found[front] = depth
        front, depth = near[front].any(0) & (found < 0), depth + 1
    return found


@gunrock("examples/algorithms/sssp/sssp.cu", {1: Race})
def sssp(rng: Random) -> Steps:
    near, first, ends = graph(rng)
    w, dist, changed = integers(rng, 1, 20, len(ends)), np.full(N, FAR, np.int32), np.zeros(1, np.int32)
    dist[0], table = 0, np.full((N, N), FAR)
    table[near], expected = w, dist.astype(int)
    for _ in range(12):
        expected = np.minimum(expected, (np.minimum(expected, FAR)[:, None] + table).min(0))
    return Steps([launch("sssp_relax", 2, 64, first, ends, w, dist, changed, N)] * 12, [exact(dist, expected)])


@gapbs("src/pr.cc", {2: OutOfBounds})
def pagerank_pull(rng: Random) -> Steps:
    near, first, ends = graph(rng)
    share, rank = rng.random(N).astype(np.float32), empty(N)
    args = (first, ends, share, rank, 0.15, 0.85, N)
    return Steps([launch("pagerank_pull", 6, 128, *args)], [close(rank, 0.15 + 0.85 * near @ share)])


@ecl("ECL-CC", {3: Race})
def components(rng: Random) -> Steps:
    near, first, ends = graph(rng, 0.01)
    starts = np.repeat(np.arange(N), np.diff(first)).astype(np.int32)
    parent, label, expected = np.arange(N, dtype=np.int32), empty(N, dtype=np.int32), np.arange(N)
    for _ in range(N):
        expected = np.where(near | np.eye(N, dtype=bool), expected, N).min(1)
    return Steps(
        [launch("union_edges", 2, 128, starts, ends, parent, len(ends)), launch("flatten", 3, 32, parent, label, N)],
        [exact(label, expected)],
    )


@gunrock("examples/algorithms/tc/tc.cu", {4: (OutOfBounds, WRONG)})
def triangles(rng: Random) -> Steps:
    near, first, ends = graph(rng, 0.1)
    starts, count = np.repeat(np.arange(N), np.diff(first)).astype(np.int32), np.zeros(1, np.uint64)
    a = near.astype(int)
    args = (first, ends, starts, len(ends), count)
    return Steps(
        [launch("triangles", -(-len(ends) // 128), 128, *args)], [exact(count, np.array([np.trace(a @ a @ a) // 6]))]
    )


@ecl("ECL-MIS")
def luby(rng: Random) -> Steps:
    near, first, ends = graph(rng)
    priority, state, after = words(rng, N), np.zeros(N, np.int32), np.zeros(N, np.int32)
    expected = state
    for _ in range(8):
        out = (near & (expected == 1)).any(1)
        beaten = (near & (expected == 0) & (priority > priority[:, None])).any(1)
        expected = np.where(expected, expected, np.where(out, 2, np.where(beaten, 0, 1)))
    turns = [(state, after), (after, state)] * 4
    assert expected.all()
    return Steps([launch("luby", 3, 32, first, ends, priority, *turn, N) for turn in turns], [exact(state, expected)])


@ecl("ECL-GC")
def colour(rng: Random) -> Steps:
    near, first, ends = graph(rng)
    priority, before, after = words(rng, N), np.full(N, -1, np.int32), np.full(N, -1, np.int32)
    expected = np.full(N, -1)
    for v in np.argsort(priority)[::-1]:
        used = set(expected[near[v]].tolist())
        expected[v] = next(c for c in range(32) if c not in used)
    turns = [(before, after), (after, before)] * 8
    return Steps(
        [launch("colour", 3, 32, first, ends, priority, *turn, N) for turn in turns], [exact(before, expected)]
    )


@gunrock("examples/algorithms/bfs/bfs.cu", {5: (Race, WRONG)})
def bfs_queue(rng: Random) -> Steps:
    near, first, ends = graph(rng)
    level, expected = np.where(np.arange(N), -1, 0).astype(np.int32), levels(near)
    queue, launches = np.zeros(1, np.int32), []
    sizes = [np.zeros(1, np.int32) for _ in range(expected.max())]
    for depth in range(1, expected.max() + 1):
        size, out = int((expected == depth - 1).sum()), empty(int((expected == depth).sum()), dtype=np.int32)
        args = (first, ends, level, queue, size, out, sizes[depth - 1], depth)
        launches.append(launch("bfs_queue", 1, 96, *args))
        queue = out
    totals = [exact(size, np.array([(expected == d + 1).sum()])) for d, size in enumerate(sizes)]
    return Steps(launches, [exact(level, expected), *totals])


@gunrock("examples/algorithms/kcore/kcore.cu")
def k_core(rng: Random) -> Steps:
    near, first, ends = graph(rng)
    degree, removed, changed = near.sum(1).astype(np.int32), np.zeros(N, np.int32), np.zeros(1, np.int32)
    left = np.ones(N, bool)
    for _ in range(N):
        left &= near[:, left].sum(1) >= 4
    args = (first, ends, degree, removed, 4, changed, N)
    return Steps([launch("peel", 3, 32, *args)] * 25, [exact(removed, ~left)])
