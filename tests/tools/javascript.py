"""Run the scripts of the playgrounds in a JavaScript engine, without a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import quickjs

PLAY = Path(__file__).resolve().parents[2] / "book" / "_static" / "play"


class Scripts:
    """The scripts that compute, and none that draws; ``call`` gives and takes JSON values."""

    def __init__(self, data: str = "") -> None:
        self._context = quickjs.Context()
        for text in (data, *((PLAY / name).read_text(encoding="utf-8") for name in ("expression.js", "rules.js"))):
            self._context.eval(text)
        self._context.eval(
            "function call(f, inputs) { return JSON.stringify(JSON.parse(inputs).map((one) => {"
            " try { return eval(f)(...one); } catch (error) {"
            " if (!(error instanceof RLPlay.ExpressionError)) throw error; return { error: error.message }; } })); }"
        )
        # What a function finds, with the sentence that another makes of it.
        self._context.eval("const said = (f, g) => (...i) => { const o = f(...i); return {...o, say: g(o)}; };")

    def call(self, function: str, inputs: list[Any]) -> list[Any]:
        """The result of a JavaScript function for each list of arguments; ``{"error": ...}`` for a bad expression."""
        answer: list[Any] = json.loads(self._context.get("call")(function, json.dumps(inputs)))
        return answer
