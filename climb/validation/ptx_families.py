"""The instructions of the PTX ISA that the emulator runs: the families of PTX 8.8, each name looked up in the registry.

PTX ISA 8.8, section "Instructions"; the names and their order are the manual's. An instruction has many forms, by type,
rounding and address space. It counts as run if the form in `FAMILIES` is, and as counted if its rule registers an
access to memory, whose requests, sectors or wavefronts a launch then counts. Every instruction that runs is counted as
a warp instruction. Run `climb emulate` on a kernel to check its own forms: an unknown one is refused by its full
opcode, with its line.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass

from climb.display.cell_output import CellOutput, table
from climb.emulator.isa import lookup

#: Instructions that the parser or the scheduler carries out without a rule.
BY_THE_PARSER = ("call", "brx.idx")

#: The names of each family, with a form that stands for the instruction. A form without dots of its own is the name.
FAMILIES: dict[str, dict[str, str]] = {
    "Integer arithmetic": {
        "add": "add.u32", "sub": "sub.u32", "mul": "mul.lo.u32", "mad": "mad.lo.u32", "mul24": "mul24.lo.u32",
        "mad24": "mad24.lo.u32", "sad": "sad.u32", "div": "div.u32", "rem": "rem.u32", "abs": "abs.s32",
        "neg": "neg.s32", "min": "min.s32", "max": "max.s32", "popc": "popc.b32", "clz": "clz.b32",
        "bfind": "bfind.u32", "fns": "fns.b32", "brev": "brev.b32", "bfe": "bfe.u32", "bfi": "bfi.b32",
        "szext": "szext.wrap.u32", "bmsk": "bmsk.clamp.b32", "dp4a": "dp4a.u32.u32", "dp2a": "dp2a.lo.u32.u32",
    },
    "Extended precision": {
        "add.cc": "add.cc.u32", "addc": "addc.u32", "sub.cc": "sub.cc.u32", "subc": "subc.u32",
        "mad.cc": "mad.lo.cc.u32", "madc": "madc.lo.u32",
    },
    "Floating point": {
        "testp": "testp.finite.f32", "copysign": "copysign.f32", "add": "add.f32", "sub": "sub.f32", "mul": "mul.f32",
        "fma": "fma.rn.f32", "mad": "mad.rn.f32", "div": "div.rn.f32", "abs": "abs.f32", "neg": "neg.f32",
        "min": "min.f32", "max": "max.f32", "rcp": "rcp.rn.f32", "sqrt": "sqrt.rn.f32", "rsqrt": "rsqrt.approx.f32",
        "sin": "sin.approx.f32", "cos": "cos.approx.f32", "lg2": "lg2.approx.f32", "ex2": "ex2.approx.f32",
        "tanh": "tanh.approx.f32",
    },
    "Half precision": {
        "add": "add.f16x2", "sub": "sub.f16x2", "mul": "mul.f16x2", "fma": "fma.rn.f16x2", "neg": "neg.f16x2",
        "abs": "abs.f16x2", "min": "min.f16x2", "max": "max.f16x2", "tanh": "tanh.approx.f16",
        "ex2": "ex2.approx.f16",
    },
    "Mixed precision": {"add": "add.f32.f16", "sub": "sub.f32.f16", "fma": "fma.rn.f32.f16"},
    "Comparison and selection": {
        "set": "set.lt.u32.s32", "setp": "setp.lt.s32", "selp": "selp.b32", "slct": "slct.u32.s32",
        "set (half)": "set.lt.f16x2.f16x2", "setp (half)": "setp.lt.f16",
    },
    "Logic and shifts": {
        "and": "and.b32", "or": "or.b32", "xor": "xor.b32", "not": "not.b32", "cnot": "cnot.b32", "lop3": "lop3.b32",
        "shf": "shf.l.wrap.b32", "shl": "shl.b32", "shr": "shr.u32",
    },
    "Data movement": {
        "mov": "mov.u32", "shfl": "shfl.idx.b32", "shfl.sync": "shfl.sync.idx.b32", "prmt": "prmt.b32",
        "ld": "ld.global.u32", "ld.global.nc": "ld.global.nc.u32", "ldu": "ldu.global.u32", "st": "st.global.u32",
        "st.async": "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32",
        "st.bulk": "st.bulk.weak.shared::cta", "multimem": "multimem.ld_reduce.relaxed.gpu.global.add.u32",
        "prefetch": "prefetch.global.L2", "prefetchu": "prefetchu.L1",
        "applypriority": "applypriority.global.L2::evict_normal", "discard": "discard.global.L2",
        "createpolicy": "createpolicy.fractional.L2::evict_last.b64", "isspacep": "isspacep.global",
        "cvta": "cvta.to.global.u64", "cvt": "cvt.rn.f32.s32", "cvt.pack": "cvt.pack.sat.s16.s32",
        "mapa": "mapa.shared::cluster.u32", "getctarank": "getctarank.shared::cluster.u32",
    },
    "Asynchronous copies": {
        "cp.async": "cp.async.ca.shared.global", "cp.async.commit_group": "cp.async.commit_group",
        "cp.async.wait_group": "cp.async.wait_group", "cp.async.wait_all": "cp.async.wait_all",
        "cp.async.bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "cp.reduce.async.bulk": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
        "cp.async.bulk.prefetch": "cp.async.bulk.prefetch.L2.global",
        "cp.async.bulk.commit_group": "cp.async.bulk.commit_group",
        "cp.async.bulk.wait_group": "cp.async.bulk.wait_group",
        "cp.async.bulk.tensor": "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.reduce.async.bulk.tensor": "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
        "cp.async.bulk.prefetch.tensor": "cp.async.bulk.prefetch.tensor.2d.L2.global.tile",
        "tensormap.replace": "tensormap.replace.tile.global_address.global.b1024.b64",
    },
    "Textures": {
        "tex": "tex.2d.v4.f32.f32", "tld4": "tld4.r.2d.v4.f32.f32", "txq": "txq.width.b32",
        "istypep": "istypep.texref",
    },
    "Surfaces": {
        "suld": "suld.b.2d.b32.trap", "sust": "sust.b.2d.b32.trap", "sured": "sured.b.add.2d.u32.trap",
        "suq": "suq.width.b32",
    },
    "Control flow": {"bra": "bra", "brx.idx": "brx.idx", "call": "call", "ret": "ret", "exit": "exit"},
    "Synchronisation and communication": {
        "barrier": "barrier.sync", "bar.warp.sync": "bar.warp.sync", "barrier.cluster": "barrier.cluster.arrive",
        "membar": "membar.gl", "fence": "fence.acq_rel.gpu", "fence.proxy": "fence.proxy.async",
        "atom": "atom.global.add.u32", "red": "red.global.add.u32",
        "red.async": "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32",
        "vote": "vote.all.pred", "vote.sync": "vote.sync.all.pred", "match.sync": "match.any.sync.b32",
        "activemask": "activemask.b32", "redux.sync": "redux.sync.add.u32", "griddepcontrol": "griddepcontrol.wait",
        "elect.sync": "elect.sync",
    },
    "mbarrier": {
        "init": "mbarrier.init.shared.b64", "inval": "mbarrier.inval.shared.b64",
        "expect_tx": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64",
        "complete_tx": "mbarrier.complete_tx.relaxed.cta.shared::cta.b64", "arrive": "mbarrier.arrive.shared.b64",
        "arrive_drop": "mbarrier.arrive_drop.shared.b64",
        "cp.async.mbarrier.arrive": "cp.async.mbarrier.arrive.shared.b64",
        "test_wait": "mbarrier.test_wait.shared.b64", "try_wait": "mbarrier.try_wait.shared.b64",
        "pending_count": "mbarrier.pending_count.b64",
    },
    "Warp matrices": {
        "wmma.load": "wmma.load.a.sync.aligned.row.m16n16k16.global.f16",
        "wmma.store": "wmma.store.d.sync.aligned.row.m16n16k16.global.f32",
        "wmma.mma": "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
        "mma": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "mma.sp": "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16",
        "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16",
    },
    "Warpgroup matrices": {
        "wgmma.mma_async": "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
        "wgmma.mma_async.sp": "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16",
        "wgmma.fence": "wgmma.fence.sync.aligned", "wgmma.commit_group": "wgmma.commit_group.sync.aligned",
        "wgmma.wait_group": "wgmma.wait_group.sync.aligned",
    },
    "Tensor memory (Blackwell)": {"tcgen05": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"},
    "Stack": {"stacksave": "stacksave.u64", "stackrestore": "stackrestore.u64", "alloca": "alloca.u64"},
    "Video, scalar": {
        **{f"v{name}": f"v{name}.u32.u32.u32" for name in ("add", "sub", "absdiff", "min", "max")},
        "vshl": "vshl.u32.u32.u32.clamp", "vshr": "vshr.u32.u32.u32.clamp", "vmad": "vmad.u32.u32.u32",
        "vset": "vset.u32.u32.eq",
    },
    "Video, SIMD": {
        **{f"v{name}{n}": f"v{name}{n}.u32.u32.u32" for n in (2, 4)
           for name in ("add", "sub", "avrg", "absdiff", "min", "max")},
        "vset2": "vset2.u32.u32.eq", "vset4": "vset4.u32.u32.eq",
    },
    "Miscellaneous": {
        "brkpt": "brkpt", "nanosleep": "nanosleep.u32", "pmevent": "pmevent", "trap": "trap",
        "setmaxnreg": "setmaxnreg.inc.sync.aligned.u32",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """The instructions of a family by name: those that `run`, those among them that are `counted`, and those
    `refused`."""

    name: str
    runs: tuple[str, ...]
    counted: tuple[str, ...]
    refused: tuple[str, ...]


def families() -> list[Family]:
    """Return the families of PTX, in the manual's order."""
    out = []
    for name, members in FAMILIES.items():
        runs = [each for each, form in members.items() if form in BY_THE_PARSER or lookup(form) is not None]
        counted = tuple(each for each in runs if _counts(members[each]))
        refused = tuple(each for each in members if each not in runs)
        out.append(Family(name, tuple(each for each in runs if each not in counted), counted, refused))
    return out


def families_table() -> CellOutput:
    """Show the families with the instructions that run, a star at those counted as accesses to memory, and those
    refused."""
    rows = []
    for each in families():
        runs = [f"{name}*" if name in each.counted else name for name in FAMILIES[each.name]]
        rows.append([each.name, ", ".join(n for n in runs if n not in each.refused), ", ".join(each.refused)])
    return table(rows, ["PTX family", "runs (*: accesses counted)", "refused"])


def _counts(form: str) -> bool:
    """Return whether the rule of an opcode registers an access to memory."""
    rule = lookup(form)
    return rule is not None and rule.emit is not None and _registers_access(_function(rule.emit))


def _function(emit: Callable) -> Callable:
    return emit.func if isinstance(emit, functools.partial) else emit


@functools.cache
def _registers_access(function: Callable) -> bool:
    """Return whether a function, or one of the same module that it calls, registers a site of access.

    The site of an mbarrier is ignored: it only locates errors.
    """
    called = (getattr(inspect.getmodule(function), name, None) for name in function.__code__.co_names)
    near = [one for one in called if inspect.isfunction(one) and one.__name__ != "barrier_site"]
    sources = (inspect.getsource(one) for one in (function, *near))
    return any("emitter.site(" in text or "range_site(" in text for text in sources)
