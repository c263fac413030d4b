"""Control flow. The rules only say where a block ends; the scheduler does the rest."""

from __future__ import annotations

from .registry import Rule, register

register("bra{uni}", rule=Rule(None, writes=0, terminator="branch"), uni=("", ".uni"))
register("ret{uni}", rule=Rule(None, writes=0, terminator="exit"), uni=("", ".uni"))
register("exit", rule=Rule(None, writes=0, terminator="exit"))
