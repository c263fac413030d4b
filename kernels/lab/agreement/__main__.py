"""``python -m kernels.lab.agreement``: count on a GPU what the emulator's counts are compared with."""

import sys

from .measuring import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
