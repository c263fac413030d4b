"""The steps picture: the lanes of a warp against time, as they diverge and reconverge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from climb.display import style
from climb.display.label_layout import settle
from climb.emulator import DeviceMemory, load
from climb.emulator.execution.steps import Step, follow
from climb.toolchain import compile_cuda

LANES = 32


def warp_steps(source: str, kernel: str, args: Sequence[Any]) -> tuple[Step, ...]:
    """Return the steps of a single warp that runs the kernel. NumPy arrays among ``args`` are copied to the device."""
    compiled = compile_cuda(source, filename="kernel.cu", name_expressions=(kernel,))
    memory, packed = DeviceMemory(), []
    for arg in args:
        if hasattr(arg, "tobytes") and getattr(arg, "ndim", 0):
            held = memory.allocate(arg.nbytes)
            held.data[:] = memoryview(arg.tobytes())
            packed.append(held.address.to_bytes(8, "little"))
        else:
            packed.append(arg.tobytes())
    return follow(
        load(compiled.ptx, compiled.sources).kernel(compiled.lowered(kernel)), 1, LANES, packed, memory=memory
    )


@style.styled
def steps_figure(steps: Sequence[Step]) -> Figure:
    """Draw a column for each step that runs a line of the source, with its active lanes filled and its lines below.

    Raises ValueError if no step runs a line of the source.
    """
    steps = [step for step in steps if step.lines]
    if not steps:
        raise ValueError("the picture needs at least one step that runs a line of the source")
    figure = style.new_figure(height=4.2)
    axes = figure.subplots()
    for column, step in enumerate(steps):
        colours = [style.BEST if runs else style.FAINT for runs in step.lanes]
        axes.barh(range(LANES), [0.9] * LANES, left=column - 0.45, height=0.86, color=colours)
    axes.set_xlim(-0.6, len(steps) - 0.4)
    axes.set_ylim(LANES - 0.4, -0.6)
    axes.set_yticks((0, 8, 16, 24, 31))
    axes.set_ylabel("lane")
    axes.set_xticks(range(len(steps)), [_where(step) for step in steps], fontsize=11)
    axes.set_xlabel("steps, each with the lines of the source that it runs")
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    said = [f"step {n + 1}, lines {_where(step)}: {int(step.lanes.sum())} lanes" for n, step in enumerate(steps)]
    settle(figure)
    return style.set_alt(figure, "Which of 32 lanes run in each step. " + "; ".join(said) + ".")


def _where(step: Step) -> str:
    lines = step.lines
    if not lines:
        return "-"
    return str(lines[0]) if len(lines) == 1 else f"{lines[0]}-{lines[-1]}"
