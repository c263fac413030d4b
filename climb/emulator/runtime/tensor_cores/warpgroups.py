"""wgmma: matrix products that a warpgroup issues and waits for.

The product is computed when it is issued. Hardware reads the operands and writes the accumulators at any time until a
wait covers the product's group, so accesses in that span are errors: in shared memory as `checks.in_flight` finds them,
in registers as `translation.product_registers` does.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, NoReturn

import numpy as np

from ...checks import faults
from ...checks.proxies import check_fenced
from ...errors import AsyncMisuse, Misaligned, PendingProduct, UnfencedProduct
from ...simt.async_access import AsyncAccess
from ...simt.groups import Group
from ...simt.lanes import WARP, Lanes
from ...simt.matrix_products import Product
from ...simt.site import Site
from ...simt.warps import from_rows
from ..asynchronous import issue, wait
from . import descriptors
from .arithmetic import Types, warpgroup_product
from .fragments import BITS, Fragment, fragment
from .products import FORM, REGISTERS
from .sparsity import chosen, sparse_product
from .warps import Registers, count_products, rows_of

GROUP = 4  # warps of a warpgroup
_SIGN = {"f16": 0x8000, "bf16": 0x8000, "tf32": 0x80000000, "e4m3": 0x80, "e5m2": 0x80}


class Form(NamedTuple):
    """One product: the fragments of a warp, which has 16 of the 64 rows, the types, and the extent of k.

    The fragment of a sparse A has half as many columns.
    """

    a: Fragment
    d: Fragment
    types: Types
    depth: int


@functools.cache
def form_of(text: str) -> Form:
    """Return the form "m64nNkK.D.A.B.C", followed by ".sp" and by ".satfinite", or by nothing."""
    _, n, k, d, a, b, c, rest = FORM.fullmatch(text).groups()
    types = Types(a, b, c, d, ".satfinite" in rest)
    stored = int(k) // 2 if ".sp" in rest else int(k)
    return Form(fragment("a", 16, stored, a), fragment("c", 16, int(n), d), types, int(k))


def multiply(
    group: Group, site: Site, text: str, number: int, a: Registers | np.ndarray, b: np.ndarray, d: Registers,
    use: np.ndarray, negated: tuple[bool, bool], transposed: tuple[bool, bool],
    metadata: np.ndarray | None = None, selector: int = 0,
) -> Registers:  # fmt: skip
    """wgmma.mma_async of a form; see `products.form_of`. Returns the registers of D.

    `a` are registers or descriptors, `b` descriptors. D is added where `use` holds. `negated` and `transposed` tell
    about a and b. `metadata` and `selector`: which elements of a sparse A are stored.
    """
    form = form_of(text)
    types, columns, stored = form.types, form.d.shape[1], form.a.shape[1]
    count_products(group, site, group.lanes.warps)
    own = isinstance(a, tuple)
    left = a if own else (a,)
    block = np.broadcast_to(group.lanes.block, group.lanes.shape)
    extra = () if metadata is None else (metadata,)
    values = rows_of(group, (block, np.broadcast_to(group.lanes.thread, block.shape)), left, (b,), (use,), d, extra)
    blocks, threads = (each[::GROUP, 0] for each in values[0])
    c = _whole(form.d, values[4])
    if not (use := _uniform(group, site, values[3][0], "scale-d")).all():
        c = np.where(use[:, None, None], c, c.dtype.type(0))
    words = _uniform(group, site, values[2][0], "descriptor of b")
    right, at_b = _read(group, site, words, blocks, threads, columns, form.depth, types.b, not transposed[1], "b")
    at_a = None
    if own:
        matrix = _whole(form.a, values[1])
    else:
        words = _uniform(group, site, values[1][0], "descriptor of a")
        matrix, at_a = _read(group, site, words, blocks, threads, 64, stored, types.a, not transposed[0], "a")
    matrix, right = (
        each ^ each.dtype.type(_SIGN[kind]) if flip else each
        for each, kind, flip in ((matrix, types.a, negated[0]), (right, types.b, negated[1]))
    )
    if metadata is None:
        out = warpgroup_product(matrix, right.swapaxes(1, 2), c, types)
    else:
        at = chosen(group, site, values[5][0], types.a, form.depth, selector, False).reshape(matrix.shape)
        out = sparse_product(warpgroup_product, matrix, right.swapaxes(1, 2), c, at, types)
    _count_operands(group, site, [each for each in (at_a, at_b) if each is not None])
    product = _issue(group, site, number, blocks, threads, at_a, at_b)
    parts = form.d.scatter(out.reshape(-1, 16, columns))
    kind = REGISTERS.get(types.d, np.uint32)
    registers = tuple(np.array(from_rows(group.lanes, each)).view(kind) for each in parts)
    group.batch.products.written(product, registers)
    return registers


def _count_operands(group: Group, site: Site, pieces: list[np.ndarray]) -> None:
    """Count the reads of shared memory: a request for each warp, and a wavefront for each 128 bytes.

    An H200 counts the same for n = 64, 128 and 256, in every layout: the pieces of a core matrix are in different
    banks. An operand in registers is not read.
    """
    number = sum(each.size for each in pieces)
    counts = group.batch.counts["matrix", site.index]
    counts[0] += group.lanes.warps
    counts[1] += number
    counts[2] += number // 8
    counts[3] += number // 8


def _whole(form: Fragment, registers: list[np.ndarray]) -> np.ndarray:
    """Return the matrices of whole warpgroups from the fragments of their warps, 16 rows each."""
    codes = form.gather(registers)
    return codes.reshape(-1, 64, codes.shape[2])


def _uniform(group: Group, site: Site, value: np.ndarray, what: str) -> np.ndarray:
    """Return the value of each warpgroup, from rows of warps. Raises WarpMismatch if its threads differ."""
    by_group = value.reshape(-1, GROUP * WARP)
    differs = by_group != by_group[:, :1]
    if differs.any():
        bad = np.broadcast_to(from_rows(group.lanes, differs.reshape(-1, WARP)), group.lanes.shape)
        faults.warp_mismatch(group, site, bad, f"the {what} is not the same in all threads of the warpgroup")
    return by_group[:, 0]


def _read(
    group: Group, site: Site, words: np.ndarray, blocks: np.ndarray, threads: np.ndarray, rows: int, depth: int,
    kind: str, by_k: bool, name: str,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return the codes of an operand in shared memory, (warpgroups, rows, depth), and the addresses of its pieces."""
    batch = group.batch
    found = descriptors.decode(words)
    bad = descriptors.misplaced(found)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        start, swizzle, base = int(found.start[first]), int(found.swizzle[first]), int(found.base[first])
        line = (start >> 7) % (swizzle // 16)
        raise Misaligned(
            f"misaligned: the descriptor of {name} starts at shared address {start}, in line {line} of the pattern of "
            f"its swizzle of {swizzle} bytes, which repeats every {8 * swizzle} bytes; its base offset says {base}",
            faults.place(batch, site.location, int(blocks[first]), int(threads[first]), 128),
            address=start,
            width=8 * swizzle,
            allocation=None,
        )
    size = BITS[kind] // 8
    address = descriptors.pieces(found, rows, depth, by_k, size)
    if batch.order.size > 1:
        other = descriptors.pieces(found._replace(leading=found.leading + descriptors.PIECE), rows, depth, by_k, size)
        if not np.array_equal(address, other):  # the leading dimension offset matters
            _check_ranks(group, site, words, blocks, threads, name)
    extents = batch.extents["shared"]
    if not extents.contains(int(address.min()), int(address.max()), site.width):
        flat, lanes = _as_lanes(group, blocks, threads, address)
        if extents.outside(flat, site.width).any():
            faults.out_of_bounds(Group(batch, lanes, {}), site, flat, "shared")
    memory = batch.shared.reshape(-1, descriptors.PIECE)
    index = address // descriptors.PIECE + (blocks * (batch.shared.shape[1] // descriptors.PIECE))[:, None, None]
    codes = memory.take(index, axis=0).view(f"u{size}").reshape(len(words), address.shape[1], -1)
    return codes if by_k else codes.swapaxes(1, 2), address


def _check_ranks(
    group: Group, site: Site, words: np.ndarray, blocks: np.ndarray, threads: np.ndarray, name: str
) -> None:
    """Raise AsyncMisuse if the descriptors of blocks of a cluster differ by their ranks above the start address."""
    batch = group.batch
    ranks = (blocks + batch.start) % batch.order.size
    seen = batch.products.fields.setdefault((site.index, name), {})
    for index, (rank, field) in enumerate(zip(ranks.tolist(), descriptors.above_start(words).tolist(), strict=True)):
        if seen.get(rank) == field:
            continue
        seen[rank] = field
        if any(other != rank and descriptors.swallow(seen[other], other, field, rank) for other in seen):
            guilty = max(rank, next(other for other in seen if other != rank))
            raise AsyncMisuse(
                f"the descriptor of {name} holds the rank of its block in the cluster ({guilty}) among the bits of its "
                "leading dimension offset: a shared address has the rank from bit 24 on, so mask the address before it "
                "becomes part of a descriptor: (address & 0x3ffff) >> 4",
                faults.place(batch, site.location, int(blocks[index]), int(threads[index]), 128),
            )


def _as_lanes(
    group: Group, blocks: np.ndarray, threads: np.ndarray, address: np.ndarray, warps: int = 1
) -> tuple[np.ndarray, Lanes]:
    """Return pieces (warpgroups, ...) as accesses of the first threads of each warpgroup's first `warps` warps, or
    shared out among its four warps for `warps` 0: addresses (1, lanes) and their lanes, in ascending order of (block,
    thread)."""
    count = len(address)
    flat = address.reshape(count, -1)
    if warps == 0:
        flat, warps = flat.reshape(count, GROUP, -1), GROUP
    else:
        flat = np.broadcast_to(flat[:, None], (count, warps, flat.shape[1]))
    shape = flat.shape
    thread = threads[:, None, None] + WARP * np.arange(warps)[None, :, None]
    block, thread = (np.broadcast_to(each, shape).reshape(1, -1) for each in (blocks[:, None, None], thread))
    return flat.reshape(1, -1), Lanes(block, thread, group.lanes.threads, True)


def _issue(
    group: Group, site: Site, number: int, blocks: np.ndarray, threads: np.ndarray, at_a: np.ndarray | None,
    at_b: np.ndarray,
) -> Product:  # fmt: skip
    """Note that the product reads shared memory and writes registers until a wait covers it.

    Each warp reads its 16 rows of a and the whole of b; its first thread stands for it. As in CUTLASS, one thread of
    the warpgroup may release the memory for all after its wait.
    """
    batch = group.batch
    groups = batch.products

    def why(block: int, thread: int, number: int) -> str:
        return groups.why(block * batch.threads + thread, number)

    if not batch.check_in_flight:
        at_a, at_b = None, at_b[:, :1, :1]
    accesses = []
    for address, warps in ((at_b, GROUP), (at_a, 0)):
        if address is not None:
            flat, lanes = _as_lanes(group, blocks, threads, address, warps)
            accesses.append(AsyncAccess(site, lanes, flat, groups.open_group(lanes), why=why, collective=True))
            if batch.check_in_flight:
                check_fenced(Group(batch, lanes, {}), site, flat)
    product = Product(tuple(accesses), lambda _: None, number=number, site=site)
    issue(batch, product)
    groups.add(product)
    return product


def commit(group: Group) -> None:
    """wgmma.commit_group."""
    group.batch.products.commit(group.lanes)


def wait_group(group: Group, number: int, site: Site) -> None:
    """wgmma.wait_group: wait until at most the latest `number` groups are open."""
    wait(group, group.batch.products, number, site)


def check_register(group: Group, site: Site, value: np.ndarray, latest: tuple[int, ...]) -> None:
    """Raise PendingProduct if a product that writes a register is not waited for; see `ProductGroups.writing`."""
    if group.batch.products.pending:
        _require_done(group, site, group.batch.products.writing(value, latest), "uses registers of the")


def check_overwrite(group: Group, site: Site, numbers: tuple[int, ...]) -> None:
    """Raise PendingProduct if a product with one of the numbers is in flight, and reads the register to be written."""
    pending = [each for each in group.batch.products.pending if each.number in numbers]
    _require_done(group, site, pending, "writes a register that is read by the")


def _require_done(group: Group, site: Site, products: list[Product], what: str) -> None:
    """Raise PendingProduct if one of the products of the group's warps is in flight."""
    threads = group.batch.threads
    for product in products:
        open_ = np.unique(product.accesses[0].lanes.linear())
        linear = group.lanes.linear()
        bad = np.isin(linear // threads * threads + linear % threads // WARP * WARP, open_)
        if bad.any():
            _raise_pending(group, site, product, bad.reshape(group.lanes.shape), what)


def unfenced(group: Group, site: Site, writer: Site | None) -> NoReturn:
    """Raise UnfencedProduct for a product whose registers `writer` has written, or for the first product."""
    where = faults.place_of(group, site, np.ones(group.lanes.shape, np.bool_))
    if writer is None:
        raise UnfencedProduct(
            "no wgmma.fence before this matrix product, the first of its warpgroup", where, other=None
        )
    there = faults.place(group.batch, writer.location, *group.lanes.at(0), 1)
    raise UnfencedProduct(
        f"no wgmma.fence between this matrix product and the write to one of its registers at "
        f"{there.file.rsplit('/', 1)[-1]}:{there.line}: {there.text.rstrip('; ')}",
        where,
        other=there,
    )


def _raise_pending(group: Group, site: Site, product: Product, bad: np.ndarray, what: str) -> NoReturn:
    batch = group.batch
    where = faults.place_of(group, site, bad)
    block, thread = group.lanes.at(int(np.flatnonzero(bad)[0]))
    there = faults.place(batch, product.site.location, block, thread // WARP * WARP, 1)
    lanes = product.accesses[0].lanes
    mine = lanes.linear() == block * batch.threads + thread // WARP * WARP
    why = batch.products.why(block * batch.threads + thread // WARP * WARP, int(product.accesses[0].number[mine][0]))
    file = there.file.rsplit("/", 1)[-1]
    raise PendingProduct(
        f"pending product: this {what} matrix product issued at {file}:{there.line}: "
        f"{there.text.rstrip('; ')}; it is still in flight, because {why}",
        where,
        other=there,
    )


RUNTIME = {
    "group_multiply": multiply, "group_commit": commit, "group_wait": wait_group, "group_register": check_register,
    "group_overwrite": check_overwrite, "group_unfenced": unfenced,
}  # fmt: skip
