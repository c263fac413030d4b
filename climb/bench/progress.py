"""Progress lines of long measurements.

They go to stderr, or to the end of the file that ``CLIMB_PROGRESS`` names: `make live` names one and shows what is
appended, because a chapter that measures would have them among its outputs.
"""

from __future__ import annotations

import os
import sys

#: The name of a file, in the environment.
VARIABLE = "CLIMB_PROGRESS"


def say(line: str) -> None:
    """Print a line at once, or append it to the file. Raises OSError if the file cannot be written."""
    name = os.environ.get(VARIABLE, "")
    if not name:
        print(line, file=sys.stderr, flush=True)
        return
    with open(name, "a", encoding="utf-8") as file:  # several processes append to it
        file.write(f"{line}\n")
