"""``python -m climb.validation.fuzzing``: random programs on this GPU and on the emulator."""

from climb.validation.fuzzing.measuring import main

if __name__ == "__main__":
    raise SystemExit(main())
