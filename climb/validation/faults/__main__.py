"""``python -m climb.validation.faults``: the planted faults on this GPU, under compute-sanitizer."""

from climb.validation.faults.measuring import main

if __name__ == "__main__":
    raise SystemExit(main())
