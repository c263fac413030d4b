"""``python -m climb.validation.agreement``: count on a GPU what the emulator's counts are compared with, and compare.

With ``--compare`` no GPU is needed: the counts that are there are compared again.
"""

import sys

from climb.validation.agreement.measuring import main
from climb.validation.agreement.summary import write_summary

if __name__ == "__main__":
    compare = sys.argv[1:] == ["--compare"]
    code = 0 if compare else main(sys.argv[1:])
    if compare or (not code and not {"--child", "--prepare", "--counts-only"} & set(sys.argv)):
        print(write_summary())
    raise SystemExit(code)
