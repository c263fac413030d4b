"""Random programs of accesses and synchronisation, which a kernel interprets, and a plain oracle of which ones race.

A program is a list of events in an order in which they can happen. Each warp executes those that concern it, in that
order; which warp comes first is up to the emulator. The oracle gives every thread a vector clock: two accesses to a
word race if one of them is a write and neither thread's clock knew of the other access.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from harness import Device

from climb.emulator import ALL_CHECKS, Race, checking

WARP, WORDS, BARRIERS, MOST = 32, 8, 8, 48
OPERATIONS = (
    "end", "read", "write", "syncwarp", "syncthreads", "named_sync", "named_arrive", "mbarrier_arrive", "mbarrier_wait",
    "mbarrier_wait_one", "cluster_arrive", "cluster_wait", "add",
)  # fmt: skip
#: `program` has MOST operations of four numbers for each warp of a block, or of a cluster; `counts` the arrivals that
#: each mbarrier waits for. Words and mbarriers are those of the first block of a cluster and then of the others.
KERNEL = r"""
#define INLINE __device__ __forceinline__
#if SIZE > 1
INLINE unsigned rank() { unsigned found; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(found)); return found; }
INLINE unsigned at(const void* p, unsigned rank) {
    unsigned own = (unsigned)__cvta_generic_to_shared(p), found;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(own), "r"(rank));
    return found;
}
#define SPACE "shared::cluster"
#else
INLINE unsigned rank() { return 0; }
INLINE unsigned at(const void* p, unsigned) { return (unsigned)__cvta_generic_to_shared(p); }
#define SPACE "shared"
#endif
INLINE void cluster_arrive() {
#if SIZE > 1
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
INLINE void cluster_wait() {
#if SIZE > 1
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}
INLINE void arrive(unsigned barrier) {
#if SIZE > 1
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(barrier) : "memory");
#else
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(barrier) : "memory");
#endif
}
INLINE void wait(const void* barrier) {
    unsigned done;
    do asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;"
                    "selp.u32 %0, 1, 0, p; }"
                    : "=r"(done) : "r"((unsigned)__cvta_generic_to_shared(barrier)) : "memory");
    while (!done);
}
extern "C" __global__ void CLUSTER interpret(const int4* program, const int* counts, int* out)
{
    __shared__ __align__(16) int words[WORDS];
    __shared__ unsigned long long barriers[BARRIERS];
    int t = threadIdx.x, lane = t % 32, warp = rank() * ((blockDim.x + 31) / 32) + t / 32, sum = 0;
    unsigned there = __activemask();
    if (t < WORDS) words[t] = -1 - t;
    if (t == 0) {
        for (int i = 0; i < BARRIERS; ++i)
            asm volatile("mbarrier.init.shared.b64 [%0], %1;"
                         :: "r"(at(barriers + i, rank())), "r"(counts[rank() * BARRIERS + i]) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    for (const int4* next = program + warp * MOST; next->x != END; ++next) {
        int4 now = *next;
        unsigned word = at(words + now.y % WORDS, now.y / WORDS), a, b, c, d, mask = now.z;
        switch (now.x) {
        case READ:
            if (mask >> lane & 1) {
                if (now.w == 1) {
                    asm volatile("ld." SPACE ".u32 %0, [%1];" : "=r"(a) : "r"(word) : "memory");
                    sum += a;
                } else if (now.w == 2) {
                    asm volatile("ld." SPACE ".v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(word) : "memory");
                    sum += a + b;
                } else {
                    asm volatile("ld." SPACE ".v4.u32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(word) : "memory");
                    sum += a + b + c + d;
                }
            }
            break;
        case WRITE:
            if (lane == now.z) asm volatile("st." SPACE ".u32 [%0], %1;" :: "r"(word), "r"(now.w) : "memory");
            break;
        case ADD:
            if (mask >> lane & 1)
                asm volatile("red.relaxed.cluster." SPACE ".add.u32 [%0], 1;" :: "r"(word) : "memory");
            break;
        case SYNCWARP:
            __syncwarp(there & (mask >> lane & 1 ? mask : ~mask));
            break;
        case SYNCTHREADS:
            __syncthreads();
            break;
        case NAMED_SYNC:
            asm volatile("bar.sync %0, %1;" :: "r"(now.y), "r"(now.z) : "memory");
            break;
        case NAMED_ARRIVE:
            asm volatile("bar.arrive %0, %1;" :: "r"(now.y), "r"(now.z) : "memory");
            break;
        case MBARRIER_ARRIVE:
            __syncwarp(there);
            if (lane == 0) arrive(at(barriers + now.y % BARRIERS, now.y / BARRIERS));
            break;
        case MBARRIER_WAIT:
            wait(barriers + now.y % BARRIERS);
            break;
        case MBARRIER_WAIT_ONE:
            if (lane == 0) wait(barriers + now.y % BARRIERS);
            __syncwarp(there);
            break;
        case CLUSTER_ARRIVE:
            cluster_arrive();
            break;
        case CLUSTER_WAIT:
            cluster_wait();
            break;
        }
    }
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    out[blockIdx.x * blockDim.x + t] = sum;
}
"""


@dataclass
class Program:
    """Events (what, warp, numbers), in an order in which they can happen. `warps`: of a block; `size`: blocks of the
    cluster, whose warps are numbered one block after the other; `last`: lanes of the last warp of each block."""

    warps: int
    size: int = 1
    last: int = WARP
    events: list[tuple[str, int, tuple[int, ...]]] = field(default_factory=list)

    def add(self, what: str, warp: int, *numbers: int) -> None:
        """Append an event of one warp."""
        self.events.append((what, warp, numbers))

    def together(self, what: str, warps: list[int], *numbers: int) -> None:
        """Append an event at which several warps meet."""
        for warp in warps:
            self.add(what, warp, *numbers)

    def lanes(self, warp: int) -> int:
        """The lanes of a warp."""
        return self.last if warp % self.warps == self.warps - 1 else WARP


def device(size: int = 1) -> Device:
    """The interpreter for blocks, or for clusters of `size` blocks."""
    names = [f"-D{name.upper()}={number}" for number, name in enumerate(OPERATIONS)]
    cluster = f"__cluster_dims__({size},1,1)" if size > 1 else ""
    sizes = [f"-DWORDS={WORDS}", f"-DBARRIERS={BARRIERS}", f"-DMOST={MOST}", f"-DSIZE={size}", f"-DCLUSTER={cluster}"]
    return Device(KERNEL, options=[*names, *sizes])


def races(interpreter: Device, program: Program, blocks: int = 1) -> bool:
    """Return whether the emulator reports a race. `blocks`: how many blocks, or clusters, execute the program."""
    everyone = program.warps * program.size
    code = np.zeros((everyone, MOST, 4), np.int32)
    counts = np.zeros((program.size, BARRIERS), np.int32)
    length = [0] * everyone
    for what, warp, numbers in program.events:
        code[warp, length[warp]] = np.array([OPERATIONS.index(what), *numbers, *[0] * (3 - len(numbers))])
        length[warp] += 1
        if what == "mbarrier_arrive":
            counts.flat[numbers[0]] += 1
    assert max(length) < MOST
    threads = WARP * (program.warps - 1) + program.last
    out = np.zeros(blocks * program.size * threads, np.int32)
    try:
        with checking(ALL_CHECKS):
            interpreter.launch("interpret", blocks * program.size, threads, code, np.maximum(counts, 1), out)
    except Race:
        return True
    return False


class Oracle:
    """Runs a program with one vector clock for each thread: `knows[t, u]`, how many accesses of u are before what t
    does now. `racy`: whether two accesses race."""

    def __init__(self, program: Program) -> None:
        self.program = program
        everyone = program.warps * program.size
        self.threads = [WARP * w + np.arange(program.lanes(w)) for w in range(everyone)]
        self.knows = np.zeros((WARP * everyone, WARP * everyone), np.int64)
        self.accesses: dict[int, list[tuple[str, np.ndarray, np.ndarray]]] = {}
        self.published: dict[tuple, np.ndarray] = {}
        self.arrived: dict[tuple, int] = {}
        self.meeting: dict[tuple, list[int]] = {}
        self.racy = False
        for what, warp, numbers in program.events:
            getattr(self, what)(warp, *numbers)

    def _of_mask(self, warp: int, mask: int) -> np.ndarray:
        return np.array([t for t in self.threads[warp] if mask >> t % WARP & 1], np.int64)

    def _access(self, how: str, threads: np.ndarray, word: int) -> None:
        self.knows[threads, threads] += 1
        before = self.accesses.setdefault(word, [])
        for other, theirs, times in before:
            if "write" in (how, other) or {how, other} == {"read", "add"}:
                ordered = self.knows[threads][:, theirs] >= times
                self.racy |= bool((~ordered & (threads[:, None] != theirs)).any())
        before.append((how, threads, self.knows[threads, threads]))

    def _join(self, threads: np.ndarray, others: np.ndarray | int = 0) -> None:
        """Threads wait for each other, and learn what has been published."""
        if threads.size:
            self.knows[threads] = np.maximum(self.knows[threads].max(axis=0), others)

    def _publish(self, place: tuple, threads: np.ndarray) -> None:
        self.published[place] = np.maximum(self.published.get(place, 0), self.knows[threads].max(axis=0))

    def read(self, warp: int, word: int, mask: int, width: int) -> None:
        threads = self._of_mask(warp, mask)
        for each in range(word, word + width):
            self._access("read", threads, each)

    def write(self, warp: int, word: int, lane: int, value: int) -> None:
        self._access("write", self.threads[warp][lane : lane + 1], word)

    def add(self, warp: int, word: int, mask: int) -> None:
        self._access("add", self._of_mask(warp, mask), word)

    def syncwarp(self, warp: int, _: int, mask: int) -> None:
        self._join(self._of_mask(warp, mask))
        self._join(self._of_mask(warp, ~mask))

    def _meet(self, place: tuple, warp: int, warps: int) -> None:
        """A warp waits at a barrier; when all `warps` of them do, they go on."""
        there = self.meeting.setdefault(place, [])
        there.append(warp)
        if len(there) == warps:
            self._join(np.concatenate([self.threads[w] for w in there]), self.published.get(place, 0))
            there.clear()

    def syncthreads(self, warp: int) -> None:
        self._meet(("block", warp // self.program.warps), warp, self.program.warps)

    def named_sync(self, warp: int, number: int, threads: int) -> None:
        place = "named", warp // self.program.warps, number
        self._meet(place, warp, threads // WARP - self.arrived.get(place, 0))

    def named_arrive(self, warp: int, number: int, threads: int) -> None:
        place = "named", warp // self.program.warps, number
        self.arrived[place] = self.arrived.get(place, 0) + 1
        self._publish(place, self.threads[warp])

    def mbarrier_arrive(self, warp: int, number: int) -> None:
        self._join(self.threads[warp])
        self._publish(("mbarrier", number), self.threads[warp][:1])

    def mbarrier_wait(self, warp: int, number: int) -> None:
        for thread in self.threads[warp]:
            self._join(np.array([thread]), self.published[("mbarrier", number)])

    def mbarrier_wait_one(self, warp: int, number: int) -> None:
        self._join(self.threads[warp], self.published[("mbarrier", number)])

    def cluster_arrive(self, warp: int, number: int) -> None:
        self._publish(("cluster", number), self.threads[warp])

    def cluster_wait(self, warp: int, number: int) -> None:
        for thread in self.threads[warp]:
            self._join(np.array([thread]), self.published[("cluster", number)])


def random_program(rng: np.random.Generator, size: int = 1, adds: bool = False) -> Program:
    """A program of up to five warps in each block, whose accesses race about every other time."""
    warps = int(rng.integers(2, 6 if size == 1 else 4))
    program = Program(warps, size, int(rng.choice([WARP, 20, 1]) if rng.random() < 0.3 else WARP))
    everyone, words = warps * size, int(rng.integers(1, 4))
    free = {"named": [list(range(1, 16)) for _ in range(size)], "mbarrier": list(range(BARRIERS * size))}
    waits: list[tuple] = []  # events that may happen from now on
    clusters = 0

    def some(of: list[int], least: int = 1) -> list[int]:
        return sorted(rng.choice(of, int(rng.integers(least, len(of) + 1)), replace=False).tolist())

    def access() -> None:
        warp, word = int(rng.integers(everyone)), int(rng.integers(words)) + WORDS * int(rng.integers(size))
        lanes = program.lanes(warp)
        masks = (-1, -1, 1, 1 << int(rng.integers(lanes)), 0xFFFF, 0x0F0F0F0F, int(rng.integers(1, 1 << lanes)))
        mask = int(rng.choice(masks)) & (1 << lanes) - 1
        if rng.random() < 0.3:
            program.add("write", warp, word, int(rng.integers(lanes)), len(program.events) + 1)
        elif adds and rng.random() < 0.5:
            program.add("add", warp, word, _signed(mask or 1))
        else:
            width = int(rng.choice([1, 1, 1, 2, 4]))
            program.add("read", warp, word // width * width, _signed(mask or 1), width)

    def synchronize() -> None:
        nonlocal clusters
        how = rng.choice(["named", "named", "named", "mbarrier", "mbarrier", "block", "warp", "cluster"])
        block = int(rng.integers(size))
        mine = list(range(block * warps, (block + 1) * warps))
        if how == "named" and free["named"][block]:
            number, present = free["named"][block].pop(), some(mine, 2)
            arriving = some(present[:-1]) if rng.random() < 0.4 else []
            program.together("named_arrive", arriving, number, WARP * len(present))
            waits.append(("named_sync", [w for w in present if w not in arriving], number, WARP * len(present)))
        elif how == "mbarrier" and free["mbarrier"]:
            number = free["mbarrier"].pop(int(rng.integers(len(free["mbarrier"]))))
            home = list(range(number // BARRIERS * warps, (number // BARRIERS + 1) * warps))
            program.together("mbarrier_arrive", some(list(range(everyone))), number)
            for warp in some(home):
                waits.append((str(rng.choice(["mbarrier_wait", "mbarrier_wait_one"])), [warp], number))
        elif how == "block" and rng.random() < 0.3:
            program.together("syncthreads", mine)
        elif how == "warp":
            warp = int(rng.integers(everyone))
            program.add("syncwarp", warp, 0, int(rng.choice([-1, 0xFFFF, 0x00FF00FF, 3])))
        elif how == "cluster" and size > 1 and not any(one[0] == "cluster_wait" for one in waits):
            clusters += 1
            program.together("cluster_arrive", list(range(everyone)), clusters)
            waits.extend(("cluster_wait", [warp], clusters) for warp in range(everyone))

    for _ in range(int(rng.integers(4, 22))):
        if waits and rng.random() < 0.6:
            what, present, *numbers = waits.pop(int(rng.integers(len(waits))))
            program.together(what, present, *numbers)
        elif rng.random() < 0.5:
            synchronize()
        else:
            access()
    for what, present, *numbers in waits:
        program.together(what, present, *numbers)
    return program


def _signed(mask: int) -> int:
    """A mask of 32 bits as int32."""
    return mask - (1 << 32) if mask >> 31 else mask
