"""``python -m kernels.lab.fuzzing``: random programs on this GPU and on the emulator."""

from .measuring import main

if __name__ == "__main__":
    raise SystemExit(main())
