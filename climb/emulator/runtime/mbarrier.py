"""mbarrier: barriers that are 64-bit words of shared memory, with phases, arrivals and transaction bytes.

PTX leaves the bits of the word open. Here they hold the number of arrivals that the current phase still waits for (bits
0 to 19), the number of arrivals of each phase (20 to 39), the transaction bytes that it still waits for (40 to 60,
signed), a mark that the word is an mbarrier (61), and the parity of the phase (63). A phase is over when it waits for
neither arrivals nor bytes. An arrival returns the word from before.

An arrival publishes the thread's writes, and a successful wait acquires those of the others. PTX ISA, section
"Parallel Synchronization and Communication Instructions: mbarrier".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np

from ..checks import faults
from ..checks.hooks import memory_fence
from ..errors import BarrierMisuse
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site
from .accesses import subgroup
from .atomics import apply
from .cluster_addresses import own_address, resolve
from .mbarrier_words import LIMIT, advance, fresh, pending, phase, transactions
from .polls import waited_in_vain
from .shared_memory import check_shared

#: Modifiers of an instruction whose mbarrier may be in another block, and of one whose mbarrier is in its own.
_ANYWHERE, _BLOCK = frozenset({"shared::cluster"}), frozenset({"shared", "shared::cta"})
_TX_MASK = np.uint64((1 << 21) - 1)


def words_of(group: Group, site: Site, address: np.ndarray, initialised: bool = True) -> np.ndarray:
    """Return the word of the mbarrier at each address, int64 in the shape of the lanes.

    Raises OutOfBounds and Misaligned; and, if it should be `initialised`, BarrierMisuse and Uninitialised.
    """
    batch = group.batch
    if not _ANYWHERE.isdisjoint(site.opcode) or _BLOCK.isdisjoint(site.opcode):
        home, local = resolve(group, site, address)
    else:
        home = np.broadcast_to(group.lanes.block, group.lanes.shape)
        local = np.broadcast_to(own_address(group, site, address), home.shape) + site.offset
    check_shared(group, site, local - site.offset)
    words = (local >> 3) + home * (batch.shared.shape[1] >> 3)
    state = batch.asynchronous
    state.prepare(batch.shared.size >> 3)
    if initialised:
        if batch.shared_shadow is not None:
            _enter(group, site, home, local, state.published.known(group.lanes, words, batch.cluster_barrier))
        dead = ~state.live[words]
        if dead.any():
            _misuse(group, site, dead, "this is no mbarrier: nothing has initialised it, or it has been invalidated")
        changed = batch.shared_view(np.dtype(np.uint64))[words] != state.values[words]
        if changed.any():
            _misuse(group, site, changed, "something else has been stored in the word of this mbarrier")
    return words


def _enter(group: Group, site: Site, home: np.ndarray, local: np.ndarray, known: np.ndarray) -> None:
    """Enter the access at `local` in the shared memory of blocks `home` into the shadow. Accesses by lanes that have
    `known` of the initialisation through a relaxed barrier of the cluster come after it, although that barrier orders
    nothing else."""
    shadow = group.batch.shared_shadow
    for ordered in (False, True) if known.any() else (False,):
        chosen = known == ordered
        part, homes, places = group, home, local
        if not chosen.all():
            part, _ = subgroup(group, chosen)
            homes, places = (each[chosen].reshape(part.lanes.shape) for each in (home, local))
        if not homes.size:
            continue
        if (homes != part.lanes.block).any():
            shadow.remote(part, site, homes, places, known=ordered)
        else:
            shadow.atomic(part, site, places - site.offset, ordered)


def init(group: Group, site: Site, address: np.ndarray, count: np.ndarray) -> None:
    """mbarrier.init: phases of `count` arrivals."""
    batch, state = group.batch, group.batch.asynchronous
    many = np.broadcast_to(count.astype(np.uint64), group.lanes.shape)
    wrong = (many == 0) | (many > LIMIT)
    if wrong.any():
        _misuse(group, site, wrong, f"its count must be 1 to {LIMIT} arrivals")
    words = words_of(group, site, address, initialised=False)
    address = own_address(group, site, address)
    memory = batch.shared_view(np.dtype(np.uint64))
    again = state.live[words] & (memory[words] == state.values[words])
    if again.any():
        first = state.initialised[int(words[again][0])]
        where = f"{first.location.file.rsplit('/', 1)[-1]}:{first.location.line}"
        _misuse(group, site, again, f"this mbarrier is in use since its initialisation at {where}; invalidate it first")
    every = np.broadcast_to(words, group.lanes.shape)
    _, firsts = np.unique(every, return_index=True)
    if firsts.size < every.size:
        again = np.ones(every.size, np.bool_)
        again[firsts] = False
        again = again.reshape(every.shape)
        _misuse(group, site, again, "another thread initialises this mbarrier too; one must, and the others wait")
    if batch.shared_shadow is not None:
        everywhere = np.ones(group.lanes.shape, np.bool_)
        batch.shared_shadow.write(group, replace(site, action="store"), address, lambda: everywhere)
    memory[words] = state.values[words] = fresh(many)
    state.live[words] = True
    state.initialised.update(dict.fromkeys(words.ravel().tolist(), site))
    state.published.initialised(group.lanes, every)
    if batch.clock is not None:
        batch.clock.order()
    state.progress()


def publish(group: Group) -> None:
    """fence.mbarrier_init: publish the initialisations, also to threads that wait at a barrier of the cluster."""
    batch = group.batch
    if batch.asynchronous.published is not None:  # something has been initialised
        batch.asynchronous.published.fence(group.lanes, batch.cluster_barrier)
    memory_fence(group, "cluster", acquires=False)


def invalidate(group: Group, site: Site, address: np.ndarray) -> None:
    """mbarrier.inval: the word may be used for anything afterwards."""
    words = words_of(group, site, address)
    state = group.batch.asynchronous
    for each in state.operations:
        if not set(words.ravel().tolist()).isdisjoint(each.barriers):
            everywhere = np.ones(group.lanes.shape, np.bool_)
            _misuse(group, site, everywhere, "an operation is in flight that will complete on this mbarrier")
    state.live[words] = False


def arrive(
    group: Group,
    site: Site,
    address: np.ndarray,
    count: np.ndarray | None,
    expected: np.ndarray | None,
    drop: bool,
    full: bool,
) -> np.ndarray:
    """mbarrier.arrive, expect_tx and complete_tx, alone or together. Returns the word from before.

    `count`: arrivals, `expected`: transaction bytes to wait for; negative bytes have been transferred. `drop`: later
    phases have fewer arrivals too. `full`: the phase may end; otherwise (noComplete) it must not.
    """
    words = words_of(group, site, address)
    shape = group.lanes.shape
    arrivals = np.zeros((), np.uint64) if count is None else count.astype(np.uint64)
    nbytes = np.zeros((), np.int64) if expected is None else expected.astype(np.int64)
    arrivals, nbytes = np.broadcast_to(arrivals, shape).ravel(), np.broadcast_to(nbytes, shape).ravel()
    if (np.abs(nbytes) > LIMIT).any():
        what = f"an mbarrier counts at most {LIMIT} transaction bytes"
        _misuse(group, site, (np.abs(nbytes) > LIMIT).reshape(shape), what)
    before = _apply(group, words.ravel(), arrivals, nbytes, drop, count is not None)
    if group.batch.trace is not None:
        _note(group, "expect" if (nbytes > 0).any() else "arrive", site, words, int(nbytes.max(initial=0)))
    over = pending(before) < arrivals.astype(np.int64)
    if over.any():
        _misuse(group, site, over.reshape(shape), "there are more arrivals than its phase has left")
    past = np.abs(transactions(before) + nbytes) > LIMIT
    if past.any():
        what = f"an mbarrier counts at most {LIMIT} transaction bytes, and this would make more"
        _misuse(group, site, past.reshape(shape), what)
    if not full:
        ended = (pending(before) == arrivals.astype(np.int64)) & (transactions(before) + nbytes == 0)
        if ended.any():
            _misuse(group, site, ended.reshape(shape), "an arrival with .noComplete has completed the phase")
    return before.reshape(shape)


def _apply(
    group: Group, words: np.ndarray, arrivals: np.ndarray, nbytes: np.ndarray, drop: bool, publishes: bool = False
) -> np.ndarray:
    """Change the words, lane by lane; return the words from before. `publishes`: lanes publish their accesses."""
    batch = group.batch
    memory = batch.shared_view(np.dtype(np.uint64))

    def step(old: np.ndarray, count: np.ndarray, tx: np.ndarray | None) -> np.ndarray:
        return advance(old, count, tx, drop)

    before = apply(memory, words, step, arrivals, nbytes.view(np.uint64) & _TX_MASK, True)
    batch.asynchronous.values[words] = memory[words]
    batch.asynchronous.progress()
    batch.changes += 1
    if batch.clock is not None:
        over = (pending(before) == arrivals.view(np.int64)) & (transactions(before) + nbytes == 0)
        whole = np.ones(words.shape, np.bool_)
        for part, ends in _by_phase(group, words, before) if over.any() else ((whole, whole),):
            if publishes and part.any():
                lanes = group.lanes if part.all() else subgroup(group, part.reshape(group.lanes.shape))[0].lanes
                batch.clock.arrive(lanes, words[part])
            batch.clock.order().phases_end(words[ends & over])
    return before


def _by_phase(group: Group, words: np.ndarray, before: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return the lanes that publish in the phase that the first lane meets at its mbarrier, and those that come too
    late for that; each with the lanes whose arrivals count for it: bool (lanes,). If any lane of a warp may come too
    late on a GPU, the whole warp publishes too late."""
    _, first, mine = np.unique(words, return_index=True, return_inverse=True)
    later = phase(before) != phase(before)[first][mine]
    if not later.any():
        return ((~later, ~later),)
    block, thread = np.divmod(group.lanes.linear(), group.lanes.threads)
    warp = np.unique(np.stack([block, thread // WARP, mine], axis=1), axis=0, return_inverse=True)[1].ravel()
    late = np.bincount(warp, later)[warp] > 0
    return (~late, ~later), (late, later)


def expect_one_more(group: Group, words: np.ndarray) -> None:
    """Let the phase of each mbarrier wait for one more arrival of each lane."""
    one_less = np.full(group.lanes.count, -1, np.int64).view(np.uint64)
    _apply(group, words.ravel(), one_less, np.zeros(group.lanes.count, np.int64), False)


def complete(group: Group, site: Site, word: int, nbytes: int, issued_in: int) -> None:
    """Complete the transaction bytes of one lane's asynchronous operation. It was issued in phase `issued_in`."""
    complete_each(group, site, np.array([word]), nbytes, np.array([issued_in]))


def complete_each(group: Group, site: Site, words: np.ndarray, nbytes: int, issued_in: np.ndarray) -> None:
    """Complete the transaction bytes of one asynchronous operation of each lane, one after the other: `nbytes` at each
    of the mbarriers `words`, (lanes,), in whose phases `issued_in`, (lanes,), they were issued."""
    shape, dead = group.lanes.shape, ~group.batch.asynchronous.live[words]
    if dead.any():
        _misuse(group, site, dead.reshape(shape), "a copy completes on an mbarrier that has been invalidated")
    before = _apply(group, words, np.zeros(words.size, np.uint64), np.full(words.size, -nbytes), False)
    late = phase(before) != issued_in
    if late.any():
        what = f"the phase of the mbarrier ended before this copy of {nbytes} bytes, which belongs to it; "
        _misuse(group, site, late.reshape(shape), what + "expect_tx is missing, or names too few bytes")
    past = np.abs(transactions(before) - nbytes) > LIMIT
    if past.any():
        _misuse(group, site, past.reshape(shape), f"an mbarrier counts at most {LIMIT} transaction bytes")


def passed(group: Group, site: Site, address: np.ndarray, which: np.ndarray, parity: bool) -> np.ndarray:
    """mbarrier.test_wait and try_wait: return whether a phase is over. `which`: a word that arrive returned, or a
    parity."""
    words = words_of(group, site, address)
    state = group.batch.asynchronous
    wanted = which.astype(np.int64) & 1 if parity else phase(which.view(np.uint64))
    over = phase(state.values[words]) != wanted
    if not over.all() and state.operations and state.finish_at(np.unique(words[~over]).tolist()):
        over = phase(state.values[words]) != wanted
    if not over.any():
        waited_in_vain(group, site, words)
        return over
    state.progress()
    if group.batch.clock is not None or group.batch.trace is not None:
        part, _ = subgroup(group, over)
        if group.batch.clock is not None:
            group.batch.clock.see_phase_end(part.lanes, words[over])
        if group.batch.trace is not None:
            _note(part, "passed", site, words[over][None], 0)
    return over


def _note(group: Group, kind: str, site: Site, words: np.ndarray, number: int) -> None:
    """Record the lanes' operations at the mbarriers `words`, by their addresses in the shared memory of their
    blocks."""
    group.batch.trace.note(group, kind, site, (words << 3) % group.batch.shared.shape[1], number)


def pending_count(word: np.ndarray) -> np.ndarray:
    """mbarrier.pending_count: the arrivals that a word from an arrival still waited for, uint32."""
    return pending(word).astype(np.uint32)


def _misuse(group: Group, site: Site, bad: np.ndarray, what: str) -> NoReturn:
    raise BarrierMisuse(f"mbarrier: {what}", faults.place_of(group, site, np.broadcast_to(bad, group.lanes.shape)))


RUNTIME = {
    "mbarrier_init": init, "mbarrier_publish": publish,
    "mbarrier_arrive": arrive, "mbarrier_passed": passed, "mbarrier_invalidate": invalidate,
    "mbarrier_pending": pending_count,
}  # fmt: skip
