"""``python -m kernels.lab.agreement``: count on a GPU what the emulator's counts are compared with, and compare.

With ``--compare`` no GPU is needed: the counts that are there are compared again.
"""

import sys

from .measuring import main
from .summary import write_summary

if __name__ == "__main__":
    code = 0 if sys.argv[1:] == ["--compare"] else main(sys.argv[1:])
    if sys.argv[1:2] != ["--child"] and not code:
        print(write_summary())
    raise SystemExit(code)
