"""Execute warps: how their lanes diverge, wait and reconverge.

Lanes of a warp that are together execute together. A branch on which they disagree splits them, and only BSYNC brings
them together again: it waits for the lanes that executed the BSSY of its barrier together and have not left. The order
in which the parts run does not affect the counts.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from climb.toolchain import Instruction
from climb.validation.sass_interpreter.exchange import Shared, shuffle
from climb.validation.sass_interpreter.operands import Operand, UnsupportedSass, operand, split
from climb.validation.sass_interpreter.operations import OPERATIONS
from climb.validation.sass_interpreter.state import Memory, State, View

_BITS = np.arange(32, dtype=np.uint32)
_SIZES = {"64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}
#: Modifiers of a load or store that do not change the value.
_HINTS = {"E", "CONSTANT", "NA", "EF", "EL", "LU", "STRONG", "WEAK", "GPU", "SYS", "SM", "LTC128B", "LTC64B", "LTC256B"}


@dataclass(frozen=True)
class Step:
    """An instruction after parsing, with its guard; `target` is the index of the step that it jumps to, or -1."""

    offset: int
    instruction: Instruction
    name: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Operand | None
    uniform: bool
    target: int = -1


@dataclass(frozen=True)
class Program:
    """The steps of a kernel, in order."""

    steps: tuple[Step, ...]

    @staticmethod
    def of(code: tuple[Instruction, ...], labels: dict[str, int]) -> Program:
        """Parse the code of a kernel. Raises UnsupportedSass, which names the opcode or operand and its place."""
        places = {one.offset: number for number, one in enumerate(code)}
        steps = []
        for one in code:
            try:
                steps.append(_read(one, places, labels))
            except UnsupportedSass as error:
                raise UnsupportedSass(f"{error.what}, in {one}") from None
        return Program(tuple(steps))

    @property
    def contested(self) -> tuple[Step, ...]:
        """Return the BSYNCs that the guarded branches of more than one split lead to directly.

        Lanes of several splits arrive there without another instruction on the way. A GPU executes some of them
        together that arrive one after the other here, so the counts may differ.
        """
        found = []
        for at, step in enumerate(self.steps):
            before = self.steps[at - 1] if at else None
            leading = [one for one in self.steps if one.name == "BRA" and one.guard is not None and one.target == at]
            falls = before is not None and before.name == "BRA" and before.guard is not None
            if step.name == "BSYNC" and len(leading) + falls > 1:
                found.append(step)
        return tuple(found)


def _read(one: Instruction, places: dict[int, int], labels: dict[str, int]) -> Step:
    name, *modifiers = one.opcode.split(".")
    operands = split(one.operands)
    known = name in OPERATIONS or (name[0] == "U" and name[1:] in OPERATIONS)
    if not known and not hasattr(Warps, f"_do_{name.lower()}"):
        raise UnsupportedSass(f"the instruction {one.opcode}")
    guard = operand(one.predicate.lstrip("@")) if one.predicate else None
    names = [each.text for each in operands if each.kind == "name" and each.text in labels]
    target = places.get(labels[names[0]], -1) if names else -1
    uniform = name[0] == "U" or name == "S2UR"
    return Step(one.offset, one, name, tuple(modifiers), operands, guard, uniform, target)


class Warps:
    """A launch. `counts` int64 (steps, 3) holds, for each step, the warps that executed it, their active threads, and
    the threads whose guard held.
    """

    def __init__(
        self,
        program: Program,
        state: State,
        bank: bytes,
        memory: Memory,
        shared: Shared,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
    ) -> None:
        self.program, self.state, self.bank, self.memory = program, state, bank, memory
        self.shared, self.grid, self.block = shared, grid, block
        self.counts = np.zeros((len(program.steps), 3), np.int64)
        per_block = np.minimum(np.maximum(state.threads - 32 * np.arange(state.warps), 0), 32)
        full = ((np.uint64(1) << per_block.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
        self.alive = np.tile(full, state.blocks)
        #: For each barrier register and lane, the lanes that executed the BSSY with it: bit masks (16, lanes).
        self.together = np.zeros((16, state.registers.shape[1]), np.uint32)
        self.parked: dict[int, np.ndarray] = {}
        self.arrived: dict[int, np.ndarray] = {}
        self.pending: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self.order: list[int] = []
        self._push(0, np.arange(self.alive.size), self.alive.copy())

    def run(self) -> None:
        """Execute until all lanes have left. Raises UnsupportedSass, IndexError."""
        while True:
            if not self.order:
                if not self._release() and not self._release_blocks():
                    break
                continue
            at = heapq.heappop(self.order)
            groups = self.pending.pop(at)
            warps, masks = (np.concatenate(part) for part in zip(*groups, strict=True))
            self._segment(at, warps, masks)
        if self.alive.any():
            raise UnsupportedSass("lanes that wait for each other for ever")

    def _push(self, at: int, warps: np.ndarray, masks: np.ndarray) -> None:
        there = masks != 0
        if there.any():
            if at not in self.pending:
                heapq.heappush(self.order, at)
            self.pending.setdefault(at, []).append((warps[there], masks[there]))

    def _segment(self, at: int, warps: np.ndarray, masks: np.ndarray) -> None:
        """Execute these parts of warps from step `at` until they may split, or reach a step where others wait."""
        row, lane = np.nonzero(masks[:, None] >> _BITS & np.uint32(1))
        lanes = warps[row] * 32 + lane
        while True:
            step = self.program.steps[at]
            holds = self._guard(step, lanes)
            self.counts[at] += (warps.size, lanes.size, lanes.size if holds is None else np.count_nonzero(holds))
            on = masks if holds is None else self._mask(holds, row, lane, warps.size)
            control = getattr(self, f"_go_{step.name.lower()}", None)
            try:
                if control is not None:
                    control(step, at, warps, masks, on)
                    return
                self._execute(step, warps, masks, on, lanes if holds is None else lanes[holds])
            except UnsupportedSass as error:
                raise UnsupportedSass(f"{error.what}, in {step.instruction}") from None
            at += 1
            if at in self.pending:
                self._push(at, warps, masks)
                return

    def _guard(self, step: Step, lanes: np.ndarray) -> np.ndarray | None:
        """Return the lanes for which the guard holds; None without a guard. A branch may have two guards: both must
        hold."""
        guards = [] if step.guard is None else [step.guard]
        if step.name == "BRA":
            guards += [one for one in step.operands if one.kind in ("P", "UP")]
        if not guards:
            return None
        view = View(self.state, self.bank, lanes, False)
        return np.logical_and.reduce([np.broadcast_to(view.holds(one), lanes.shape) for one in guards])

    @staticmethod
    def _mask(holds: np.ndarray, row: np.ndarray, lane: np.ndarray, rows: int) -> np.ndarray:
        """Return the lanes of each row for which it holds, as a bit mask (uint32)."""
        values = np.where(holds, np.uint32(1) << lane.astype(np.uint32), np.uint32(0))
        return np.bincount(row, values, rows).astype(np.uint32)  # distinct bits: a sum is their union

    def _execute(self, step: Step, warps: np.ndarray, masks: np.ndarray, on: np.ndarray, lanes: np.ndarray) -> None:
        if step.uniform:
            lanes = np.unique(warps[on != 0])
        if not lanes.size:
            return
        view = View(self.state, self.bank, lanes, step.uniform)
        special = getattr(self, f"_do_{step.name.lower()}", None)
        if special is not None:
            special(step, view, warps[on != 0], on[on != 0])
            return
        name = step.name if step.name in OPERATIONS else step.name[1:]
        OPERATIONS[name](view, step.modifiers, step.operands)

    # Control flow ---------------------------------------------------------------------------------------------------

    def _go_bra(self, step: Step, at: int, warps: np.ndarray, masks: np.ndarray, on: np.ndarray) -> None:
        if step.target < 0 or set(step.modifiers) - {"U", "DIV", "CONV"}:
            raise UnsupportedSass("a branch of this kind")
        self._push(step.target, warps, on)
        self._push(at + 1, warps, masks & ~on)

    def _go_exit(self, step: Step, at: int, warps: np.ndarray, masks: np.ndarray, on: np.ndarray) -> None:
        np.bitwise_and.at(self.alive, warps, ~on)
        self._push(at + 1, warps, masks & ~on)

    def _go_bsync(self, step: Step, at: int, warps: np.ndarray, masks: np.ndarray, on: np.ndarray) -> None:
        if step.guard is not None:
            raise UnsupportedSass("a guarded BSYNC")
        waiting = self.parked.setdefault(at, np.zeros(self.alive.size, np.uint32))
        np.bitwise_or.at(waiting, warps, masks)

    def _release(self) -> bool:
        """Release the lanes at a BSYNC whose group is complete. Returns whether there were any."""
        moved = False
        for at, waiting in list(self.parked.items()):
            barrier = self.program.steps[at].operands[0]
            warps = np.flatnonzero(waiting)
            row, lane = np.nonzero(waiting[warps][:, None] >> _BITS & np.uint32(1))
            group = self.together[int(barrier.text[1:])][warps[row] * 32 + lane] & self.alive[warps[row]]
            ready = group & ~waiting[warps[row]] == 0
            if ready.any():
                pairs = np.unique(np.stack([warps[row][ready], group[ready]]), axis=1)
                released, masks = pairs[0].astype(np.int64), pairs[1].astype(np.uint32)
                np.bitwise_and.at(waiting, released, ~masks)
                self._push(at + 1, released, masks)
                moved = True
            if not waiting.any():
                del self.parked[at]
        return moved

    def _go_bar(self, step: Step, at: int, warps: np.ndarray, masks: np.ndarray, on: np.ndarray) -> None:
        whole = step.modifiers[:1] == ("SYNC",) and len(step.operands) == 1 and step.operands[0].value == "0x0"
        if step.guard is not None or not whole:
            raise UnsupportedSass("a barrier of this kind")
        np.bitwise_or.at(self.arrived.setdefault(at, np.zeros(self.alive.size, np.uint32)), warps, masks)

    def _release_blocks(self) -> bool:
        """Release the blocks whose threads are all at a barrier or have left. Returns whether there were any."""
        waiting = np.bitwise_or.reduce([*self.arrived.values(), np.zeros(self.alive.size, np.uint32)])
        there = (waiting == self.alive).reshape(self.state.blocks, -1).all(axis=1)
        ready = np.repeat(there, self.state.warps) & (waiting != 0)
        for at, masks in self.arrived.items():
            released = np.flatnonzero(ready & (masks != 0))
            self._push(at + 1, released, masks[released])
            masks[released] = 0
        return bool(ready.any())

    # Instructions that depend on more than the lanes' operands --------------------------------------------------------

    def _do_bra(self, *_: object) -> None: ...

    _do_exit = _do_bsync = _do_bar = _do_bra

    def _do_nop(self, *_: object) -> None:
        """Do nothing."""

    def _do_bssy(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        row, _ = np.nonzero(masks[:, None] >> _BITS & np.uint32(1))
        self.together[int(step.operands[0].text[1:])][view.at] = masks[row]

    def _do_vote(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        if step.modifiers not in (("ANY",), ("ALL",)):
            raise UnsupportedSass("a vote of this kind")
        *targets, condition = step.operands
        row, lane = np.nonzero(masks[:, None] >> _BITS & np.uint32(1))
        ballot = self._mask(np.broadcast_to(view.holds(condition), lane.shape), row, lane, warps.size)
        verdict = ballot != 0 if step.modifiers == ("ANY",) else ballot == masks
        for target in targets:
            if target.kind == "R":
                view.set_words(target, ballot[row])
            else:
                view.set_holds(target, verdict[row])

    def _do_s2r(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        lanes = view.at
        thread, block = lanes % (self.state.warps * 32), lanes // (self.state.warps * 32)
        view.set_words(step.operands[0], self._special(step.operands[1].text, thread, block).astype(np.uint32))

    def _do_s2ur(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        if not step.operands[1].text.startswith(("SR_CTAID", "SR_CgaCtaId")):
            raise UnsupportedSass(f"the special register {step.operands[1].text} of a warp")
        block = view.at // self.state.warps
        values = self._special(step.operands[1].text, np.zeros_like(block), block)
        view.set_words(step.operands[0], values.astype(np.uint32))

    def _special(self, name: str, thread: np.ndarray, block: np.ndarray) -> np.ndarray:
        x, y, _ = self.block
        across, down, _ = self.grid
        known = {
            "SR_TID.X": thread % x, "SR_TID.Y": thread // x % y, "SR_TID.Z": thread // (x * y),
            "SR_CTAID.X": block % across, "SR_CTAID.Y": block // across % down, "SR_CTAID.Z": block // (across * down),
            "SR_LANEID": thread % 32, "SR_CgaCtaId": np.zeros_like(block),  # no clusters here
        }  # fmt: skip
        if name not in known:
            raise UnsupportedSass(f"the special register {name}")
        return known[name]

    def _do_cs2r(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        if step.operands[1].text != "SRZ" or step.modifiers not in ((), ("32",)):
            raise UnsupportedSass(f"the special register {step.operands[1].text}")
        for part in range(1 if step.modifiers else 2):
            view.set_words(step.operands[0], np.zeros(1, np.uint32), part)

    def _do_ldc(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        if step.modifiers not in ((), ("64",)):
            raise UnsupportedSass("a constant of this width")
        for part in range(2 if step.modifiers else 1):
            view.set_words(step.operands[0], view.words(step.operands[1], part), part)

    _do_uldc = _do_ldc

    def _width(self, step: Step) -> int:
        unknown = set(step.modifiers) - _HINTS - set(_SIZES)
        if unknown:
            raise UnsupportedSass(f"the modifier .{unknown.pop()}")
        return next((_SIZES[one] for one in step.modifiers if one in _SIZES), 4)

    def _do_ldg(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        if len(step.operands) != 2:
            raise UnsupportedSass("a load with a predicate")
        width = self._width(step)
        self._take(step, view, self.memory.data[self.memory.at(view.addresses(step.operands[1].text), width)])

    def _do_lds(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        block = view.at // (32 * self.state.warps)
        self._take(step, view, self.shared.data[self.shared.at(view, step.operands[1].text, self._width(step), block)])

    def _take(self, step: Step, view: View, data: np.ndarray) -> None:
        """Write uint8 (lanes, bytes) into registers."""
        width = data.shape[1]
        if width < 4:
            signed = any(one in ("S8", "S16") for one in step.modifiers)
            values = np.ascontiguousarray(data).view(f"{'i' if signed else 'u'}{width}")[:, 0]
            view.set_words(step.operands[0], values.astype(np.int32).view(np.uint32))
            return
        words = np.ascontiguousarray(data).view(np.uint32)
        for part in range(width // 4):
            view.set_words(step.operands[0], words[:, part], part)

    def _do_stg(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        width = self._width(step)
        self.memory.data[self.memory.at(view.addresses(step.operands[0].text), width)] = self._given(step, view, width)

    def _do_sts(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        width, block = self._width(step), view.at // (32 * self.state.warps)
        places = self.shared.at(view, step.operands[0].text, width, block)
        self.shared.data[places] = self._given(step, view, width)

    def _given(self, step: Step, view: View, width: int) -> np.ndarray:
        """Return the bytes that a store writes, uint8 (lanes, width)."""
        words = [np.broadcast_to(view.words(step.operands[1], part), view.at.shape) for part in range(-(-width // 4))]
        return np.ascontiguousarray(np.stack(words, axis=1)).view(np.uint8)[:, :width]

    def _do_shfl(self, step: Step, view: View, warps: np.ndarray, masks: np.ndarray) -> None:
        held = np.zeros(self.state.registers.shape[1], np.bool_)
        held[view.at] = True
        shuffle(view, step.modifiers[0], step.operands, held)
