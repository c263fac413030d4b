"""Matrix product over several GPUs on tensor cores, as exact as float32: what is left of the gain with a fast kernel.

The problem is that of ``split_matmul``, the kernels are those of ``tgemm``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from climb.bench.problem import Size
from climb.distributed.ladder import SharedLadder, SharedRung
from climb.distributed.plan import COMPUTE, MESSAGES, After, Arrays, Collective, Compute, Part, Place, Plan
from kernels.many_gpus import split_matmul
from kernels.sgemm.sgemm.product import Product
from kernels.tensor_cores.tgemm.plans import PLANS

#: The rung of tgemm that is fastest at the headline sizes, and its file.
LAUNCHES, SCRATCH = PLANS["one_launch"]
SOURCE = "../../tensor_cores/tgemm/11_one_launch.cu"

problem = replace(
    split_matmul.problem,
    name="split_tgemm",
    title="Matrix product over several GPUs, float32 by tensor cores",
    headline=tuple({"m": edge, "n": edge, "k": edge} for edge in (8192, 4096)),
)


def _own(place: Place, size: Size) -> Product:
    """A rank's product: all of A, its columns of B."""
    return Product.of({**size, "n": len(place.share(size["n"]))})


def _columns(place: Place, size: Size) -> Plan:
    """No message; every rank splits all of A for its columns.

    Launches do not overlap here: CuPy's do not take the attribute for that, and it would save microseconds of
    milliseconds.
    """
    product = _own(place, size)
    if not product.m or not product.n:
        return ()
    return tuple(Compute(replace(launch, pdl=False), COMPUTE) for launch in LAUNCHES(product))


def _gather(place: Place, size: Size) -> Plan:
    """A is spread over the ranks by rows, and gathered first."""
    count = size["m"] // place.ranks * size["k"]
    gather = Collective("allGather", Part("rows", 0, count), Part("A", 0, count * place.ranks))
    return (gather, After(COMPUTE, MESSAGES), *_columns(place, size))


def _workspace(place: Place, size: Size) -> Arrays:
    product = _own(place, size)
    return SCRATCH(product) if product.m and product.n else {}


def _rung(name: str, idea: str, **how: object) -> SharedRung:
    return SharedRung(name, idea, _columns, SOURCE, _workspace, arch="sm_90a", **how)  # type: ignore[arg-type]


shared_ladder = SharedLadder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("one_gpu", "the whole product on one GPU", alone=True),
        _rung("columns", "columns of B, no message"),
        replace(
            split_matmul.shared_ladder["gather_rows"],
            plan=_gather,
            source=SOURCE,
            workspace=_workspace,
            arch="sm_90a",
        ),
    ),
)
