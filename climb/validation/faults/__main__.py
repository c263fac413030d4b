"""``python -m kernels.lab.faults``: the planted faults on this GPU, under compute-sanitizer."""

from .measuring import main

if __name__ == "__main__":
    raise SystemExit(main())
