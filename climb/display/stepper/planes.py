"""The march of a 3D convolution: a block adds one input plane after another to the planes of its outputs."""

from __future__ import annotations

from climb.bench.counting import block_events
from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.display.cell_output import CellOutput
from climb.display.stepper.frame import Drawing, Label, Layer, Patch, box, listed, number, path, stepper, text
from climb.display.stepper.march import March, march

_WIDTH, _SIDE = 420, 96
_TOP = 34
_MOST = 24


def planes_stepper(rung: BoundRung, size: Size, *, block: tuple[int, int, int] = (0, 0, 0)) -> CellOutput:
    """Step through the planes that one block of a 3D convolution loads, adds and stores.

    ``size`` has the edge ``n`` of the cube and ``k`` of the weights. Raises ValueError for a rung whose blocks do not
    march, and for a march of more than 24 steps: choose a size at which the block has fewer planes.

    >>> planes_stepper(conv3d["streamed"], {"n": 72, "k": 5}, block=(1, 1, 1))               # doctest: +SKIP
    """
    seen = march(block_events(rung, size, block=block), size["n"])
    if len(seen.steps) > _MOST:
        raise ValueError(
            f"the block marches for {len(seen.steps)} steps, more than the {_MOST} that the picture has room for; "
            "choose another size or another block"
        )
    reach = size["k"] // 2
    count = range(len(seen.steps))
    drawing = Drawing(_WIDTH, 0)
    bottom = max(_inputs(drawing, seen), _outputs(drawing, seen, reach))
    bottom = _place(drawing, seen, block, bottom)
    entries = [("on", "added now, or stored now"), ("soon", "being loaded, or sums in registers"), ("done", "done")]
    if seen.loaded[:2] != seen.tile[:2]:
        entries.insert(1, ("other", "halo"))
    drawing.height = bottom
    sentences = [_sentence(seen, at, reach) for at in count]
    title = f"A block of {rung.rung.name} marches through {len(_planes(seen))} planes, with {size['k']}³ weights"
    middle = next((at for at in count if len(_sums(seen, at, reach)) == size["k"] and seen.steps[at].stores), -1)
    return stepper("planes", title, drawing, sentences, key=entries, telling=middle)


def _planes(seen: March) -> list[int]:
    return sorted({step.loads for step in seen.steps if step.loads is not None})


def _sums(seen: March, at: int, reach: int) -> list[int]:
    """Return the output planes to which the plane that is read in a step is added."""
    plane, (first, last) = seen.steps[at].reads, seen.tile[2]
    return [] if plane is None else [z for z in range(plane - reach, plane + reach + 1) if first <= z <= last]


def _inputs(drawing: Drawing, seen: March) -> float:
    """Draw the input planes as a stack that comes towards the reader, each with its halo; return the lower edge."""
    planes, count = _planes(seen), range(len(seen.steps))
    across, down = _steps(len(planes))
    wide = seen.loaded[0][1] - seen.loaded[0][0] + 1
    scale = _SIDE / wide
    left, side = 12.0, (seen.tile[0][1] - seen.tile[0][0] + 1) * scale
    inset = ((seen.tile[0][0] - seen.loaded[0][0]) * scale, (seen.tile[1][0] - seen.loaded[1][0]) * scale)
    high = (seen.loaded[1][1] - seen.loaded[1][0] + 1) * scale
    tall = (seen.tile[1][1] - seen.tile[1][0] + 1) * scale
    drawing.parts += [
        text(left, 14, "Input, with its halo", "text"),
        Label(left, 29, [_reading(seen, at) for at in count], "quiet", size=11),
    ]
    for place, plane in enumerate(planes):
        x, y = left + place * across, _TOP + 6 + place * down
        states = [_input_paint(seen, at, plane) for at in count]
        inner = box(x + inset[0], y + inset[1], side, tall)
        around = ["other" if paint in ("on", "soon") else paint for paint in states]
        drawing.parts += [
            Patch(box(x, y, _SIDE, high), around),
            Patch(inner, states),
            Layer("panel", [box(x, y, _SIDE, high) + inner if paint else "" for paint in states], 0.9),
        ]
    return _TOP + 6 + (len(planes) - 1) * down + high + 8


def _outputs(drawing: Drawing, seen: March, reach: int) -> float:
    """Draw the planes of outputs as a stack beside that of the inputs; return the lower edge."""
    first, last = seen.tile[2]
    count = range(len(seen.steps))
    across, down = _steps(max(len(_planes(seen)), last - first + 1))
    scale = _SIDE / (seen.loaded[0][1] - seen.loaded[0][0] + 1)
    wide = (seen.tile[0][1] - seen.tile[0][0] + 1) * scale
    high = (seen.tile[1][1] - seen.tile[1][0] + 1) * scale
    left = 228.0
    labels = [_adding(seen, at, reach) for at in count]
    drawing.parts += [
        text(left, 14, "Output, sums in registers", "text"),
        Label(left, 29, labels, "quiet", size=11),
    ]
    for plane in range(first, last + 1):
        place = plane - _planes(seen)[0]
        x, y = left + place * across, _TOP + 6 + place * down
        states = [_output_paint(seen, at, plane, reach) for at in count]
        shape = box(x, y, wide, high)
        drawing.parts += [
            Patch(shape, states),
            Layer("panel", [shape if paint else "" for paint in states], 0.9),
        ]
    return _TOP + 6 + (last - _planes(seen)[0]) * down + high + 8


def _place(drawing: Drawing, seen: March, block: tuple[int, int, int], top: float) -> float:
    """Show where in the volume the block works, as a small cube and in words; return the lower edge."""
    left, edge, deep = 16.0, 56.0, 26.0
    scale, depth = edge / seen.n, deep / seen.n

    def corner(x: float, y: float, z: float) -> tuple[float, float]:
        return left + deep + x * scale - z * depth, top + 6 + y * scale + z * depth * 0.7

    def face(points: list[tuple[float, float, float]]) -> str:
        return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in (corner(*p) for p in points)) + "z"

    def prism(xs: tuple[float, float], ys: tuple[float, float], zs: tuple[float, float]) -> str:
        (a, b), (c, d), (e, f) = xs, ys, zs
        front = face([(a, c, f), (b, c, f), (b, d, f), (a, d, f)])
        upper = face([(a, c, f), (b, c, f), (b, c, e), (a, c, e)])
        return front + upper + face([(b, c, f), (b, d, f), (b, d, e), (b, c, e)])

    (a, b), (c, d), (e, f) = ((low, high + 1) for low, high in seen.tile)
    n = seen.n
    drawing.parts += [
        path(prism((a, b), (c, d), (0, n)), "rest"),
        path(prism((a, b), (c, d), (e, f)), "on"),
        path(prism((0, n), (0, n), (0, n)), "line", 0.8),
    ]
    right = left + edge + deep + 20
    sides = [f"{name} {low} to {high}" for name, (low, high) in zip("xyz", seen.tile, strict=True)]
    drawing.parts += [
        text(right, top + 14, f"Block {block}, volume {n} x {n} x {n}", "text"),
        text(right, top + 31, f"stores {', '.join(sides)}", size=11),
        text(right, top + 47, f"loads {_extent(seen.loaded)} floats", size=11),
        text(right, top + 63, f"for {_extent(seen.tile)} outputs", size=11),
    ]
    return top + edge + deep * 0.7 + 14


def _extent(ranges: tuple[tuple[int, int], ...]) -> str:
    return " x ".join(str(high - low + 1) for low, high in ranges)


def _steps(planes: int) -> tuple[float, float]:
    """Return the distances between the planes of a stack, to the right and down."""
    across = min(10.0, 84 / max(1, planes - 1))
    return across, across * 0.62


def _reading(seen: March, at: int) -> str:
    step = seen.steps[at]
    said = [f"load z = {step.loads}"] if step.loads is not None else []
    if step.reads is not None:
        said.append(f"add z = {step.reads}")
    return ", ".join(said) or "no plane is left"


def _adding(seen: March, at: int, reach: int) -> str:
    if sums := _sums(seen, at, reach):
        return f"add to z = {_range(sums)}"
    begun = any(step.reads is not None for step in seen.steps[:at])
    return "all planes added" if begun else "no plane is there yet"


def _input_paint(seen: March, at: int, plane: int) -> str:
    step = seen.steps[at]
    if step.reads == plane:
        return "on"
    if step.loads == plane:
        return "soon"
    return "done" if any(plane in (one.loads, one.reads) for one in seen.steps[:at]) else ""


def _output_paint(seen: March, at: int, plane: int, reach: int) -> str:
    if plane in seen.steps[at].stores:
        return "on"
    if any(plane in one.stores for one in seen.steps[:at]):
        return "done"
    begun = any(plane in _sums(seen, before, reach) for before in range(at + 1))
    return "soon" if begun else ""


def _range(planes: list[int]) -> str:
    return str(planes[0]) if len(planes) == 1 else f"{planes[0]} to {planes[-1]}"


def _sentence(seen: March, at: int, reach: int) -> str:
    step = seen.steps[at]
    said = []
    if step.loads is not None:
        (x, y, _) = seen.tile
        inside = (x[1] - x[0] + 1) * (y[1] - y[0] + 1)
        halo = len(step.words) - inside
        verb = "is loaded" if step.reads == step.loads else "is on its way"
        said.append(f"plane {step.loads} {verb}: {len(step.words):,} floats, {halo:,} of them halo")
    if step.reads is not None:
        sums = _sums(seen, at, reach)
        said.append(f"plane {step.reads} is added to the sums of {listed(sums, 'output plane')}")
    if step.stores:
        verb = "is complete and stored" if len(step.stores) == 1 else "are complete and stored"
        said.append(f"{listed(step.stores, 'output plane')} {verb}")
    return f"{'; '.join(said)[:1].upper()}{'; '.join(said)[1:]}."
