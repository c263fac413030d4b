"""PTX with probes: each launch of a kernel says when its blocks began, passed their waits, and ended.

The probes read ``%globaltimer``, a clock that all SMs share, and store it in an array that a launch gets as one more
argument. They are added to PTX, so that the kernel's source stays as it is. Machine code with probes differs from the
code that records are made of; how much slower it runs is part of the record (``climb.bench.spans``).

In a launch whose blocks stay for many steps, the marks of its barriers are the times of its steps. If the warps of a
block have different tasks, the marks are the barriers of the first thread, including those for some warps only; a block
ends with its last warp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The additional parameter: an array of uint64, ``COLUMNS`` for each block.
PARAMETER = "climb_times"
#: The stored times of a block, by column: when its first thread began, when its last thread ended, when its first
#: thread passed griddepcontrol.wait (0 if there is none), then when it passed each of its barriers, up to MARKS.
BEGAN, ENDED, WENT_ON, FIRST_MARK = range(4)
MARKS = 96
COLUMNS = FIRST_MARK + MARKS

_ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+[\w$]+\s*\(", re.MULTILINE)
_BARRIER = re.compile(r"^\s*(?:bar\.sync|barrier\.sync|barrier\.cta\.sync|barrier\.cluster\.wait)\b")
_WAIT = re.compile(r"^\s*griddepcontrol\.wait\b")
_RETURN = re.compile(r"^\s*(?P<guard>@!?%\w+\s+)?(?:ret|exit)(?:\.uni)?;")
_BEGIN = f"""
	.reg .pred %climb_p<3>;
	.reg .b32 %climb_r<6>;
	.reg .b64 %climb_d<4>;
	mov.u32 %climb_r0, %ctaid.z;
	mov.u32 %climb_r1, %nctaid.y;
	mov.u32 %climb_r2, %ctaid.y;
	mad.lo.u32 %climb_r0, %climb_r0, %climb_r1, %climb_r2;
	mov.u32 %climb_r1, %nctaid.x;
	mov.u32 %climb_r2, %ctaid.x;
	mad.lo.u32 %climb_r0, %climb_r0, %climb_r1, %climb_r2;
	ld.param.u64 %climb_d0, [{PARAMETER}];
	cvta.to.global.u64 %climb_d0, %climb_d0;
	mul.wide.u32 %climb_d1, %climb_r0, {8 * COLUMNS};
	add.u64 %climb_d0, %climb_d0, %climb_d1;
	mov.u32 %climb_r0, %tid.x;
	mov.u32 %climb_r1, %tid.y;
	mov.u32 %climb_r2, %tid.z;
	or.b32 %climb_r0, %climb_r0, %climb_r1;
	or.b32 %climb_r0, %climb_r0, %climb_r2;
	setp.eq.u32 %climb_p0, %climb_r0, 0;
	mov.u32 %climb_r3, 0;
	mov.u64 %climb_d1, %globaltimer;
	@%climb_p0 st.global.u64 [%climb_d0+{8 * BEGAN}], %climb_d1;
"""
_AFTER_WAIT = f"""
	mov.u64 %climb_d1, %globaltimer;
	@%climb_p0 st.global.u64 [%climb_d0+{8 * WENT_ON}], %climb_d1;
"""
_AFTER_BARRIER = f"""
	setp.lt.u32 %climb_p1, %climb_r3, {MARKS};
	and.pred %climb_p1, %climb_p1, %climb_p0;
	mul.wide.u32 %climb_d2, %climb_r3, 8;
	add.u64 %climb_d2, %climb_d2, %climb_d0;
	add.u32 %climb_r3, %climb_r3, 1;
	mov.u64 %climb_d1, %globaltimer;
	@%climb_p1 st.global.u64 [%climb_d2+{8 * FIRST_MARK}], %climb_d1;
"""
# One thread of those that leave together stores the time.
_END = f"""
	activemask.b32 %climb_r4;
	mov.u32 %climb_r5, %lanemask_lt;
	and.b32 %climb_r4, %climb_r4, %climb_r5;
	setp.eq.u32 %climb_p2, %climb_r4, 0;
	mov.u64 %climb_d1, %globaltimer;
	@%climb_p2 red.global.max.u64 [%climb_d0+{8 * ENDED}], %climb_d1;
	ret;
"""


def with_probes(ptx: str) -> str:
    """Return PTX whose kernels take ``PARAMETER`` as their last one and store their times there; without its line
    table.

    Barriers and waits in functions that are not inlined, and those under a guard, get no probe.
    Raises ValueError for PTX without a kernel.
    """
    lines = _without_line_table(ptx)
    text = "\n".join(lines)
    starts = [match.start() for match in _ENTRY.finditer(text)]
    if not starts:
        raise ValueError("this PTX has no kernel to put probes into")
    done, rest = "", text
    for number in range(len(starts)):
        match = _ENTRY.search(rest)
        assert match is not None
        end = rest.index(")", match.end())
        opening = rest.index("{", end)
        closing = _closing(rest, opening)
        given = rest[match.end() : end].rstrip()
        parameters = f"{given},\n" if given.strip() else "\n"
        head = f"{rest[: match.end()]}{parameters}\t.param .u64 {PARAMETER}\n{rest[end:opening]}"
        body = "\n".join(_probed(rest[opening + 1 : closing].split("\n"), f"$climb_end{number}"))
        done += f"{head}{{{_BEGIN}{body}}}"
        rest = rest[closing + 1 :]
    return done + rest


def _probed(body: list[str], end: str) -> Iterator[str]:
    """Return the lines of a kernel's body with probes; ``end`` is a label that none of them has."""
    guarded = False
    for line in body:
        if leaves := _RETURN.match(line):
            guarded = guarded or bool(leaves["guard"])
            yield f"\t{leaves['guard']}bra {end};" if leaves["guard"] else _END
            continue
        yield line
        if _WAIT.match(line):
            yield _AFTER_WAIT
        elif _BARRIER.match(line):
            yield _AFTER_BARRIER
    if guarded:
        yield f"{end}:{_END}"


def _closing(text: str, opening: int) -> int:
    """Return the place of the brace that closes the one at ``opening``; NVRTC's PTX has no braces in strings or
    comments."""
    depth = 0
    for brace in re.finditer(r"[{}]", text[opening:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return opening + brace.start()
    raise ValueError("this PTX ends within a kernel")


def _without_line_table(ptx: str) -> list[str]:
    """Drop the lines that name places in the source: equal kernels of two files then are equal text."""
    kept, inside = [], False
    for line in ptx.split("\n"):
        inside = inside or line.lstrip().startswith(".section")
        if not inside and not re.match(r"\s*(?:\.loc\b|\.file\b|//)", line) and line.strip():
            kept.append(line)
        inside = inside and "}" not in line
    return kept
