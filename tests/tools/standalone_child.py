"""Run scripts of standalone cells outside the book; `tools.standalone_runner` starts this file as a process.

Standard input has `{"scripts": {name: code}, "times": {name: [milliseconds]}, "cupy": whether to take real CuPy}`. The
answer is `{name: [printed text, error or ""]}`. Without a GPU, `import cupy` finds the book's stand-in, and nothing
else of the repository is on the path. Libraries that requirements.txt does not bring cannot be loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import sys
import traceback
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
TOOLS = str(Path(__file__).parent)


def main() -> None:
    given = json.load(sys.stdin)
    sys.path.insert(0, TOOLS)
    locked_cupy = importlib.import_module("locked_cupy")
    sys.path.remove(TOOLS)
    if given["cupy"]:
        cp = importlib.import_module("cupy")
    else:
        sys.path.insert(0, ROOT)
        cp = importlib.import_module("climb.fake_cupy")
        sys.modules["cupy"] = cp
    locked_cupy.refuse_libraries(cp)
    sys.path[:] = [entry for entry in sys.path if entry != ROOT]
    measured = cp.cuda.get_elapsed_time
    answer = {}
    for name, script in given["scripts"].items():
        times = iter(given["times"].get(name, ()))

        def get_elapsed_time(start_event, end_event, times=times):
            measured(start_event, end_event)
            return next(times, math.nan)

        cp.cuda.get_elapsed_time = get_elapsed_time
        printed, error = io.StringIO(), ""
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(script, name, "exec"), {"__name__": "__main__"})
            except Exception:
                error = traceback.format_exc()
        answer[name] = [printed.getvalue(), error]
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
