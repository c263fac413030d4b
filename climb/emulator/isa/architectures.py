"""Instructions that only some targets have: ptxas refuses them elsewhere, so the emulator does too."""

from __future__ import annotations

#: Prefixes of opcodes that need a target with the features of one architecture or family, such as sm_90a.
SPECIFIC = ("setmaxnreg.", "tensormap.replace.", "wgmma.")
#: The prefixes among them that no later architecture has.
HOPPER = ("wgmma.",)


def lacks(opcode: str, target: str) -> str:
    """Return the `.target` that a module needs for an opcode that its own does not allow; empty if it allows the
    opcode."""
    architecture = target.partition(",")[0].strip()
    if opcode.startswith(HOPPER) and architecture != "sm_90a":
        return "sm_90a"
    if opcode.startswith(SPECIFIC) and not architecture.endswith(("a", "f")):
        return f"{architecture or 'sm_90'}a"
    return ""
