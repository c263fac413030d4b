"""``python -m climb COMMAND ...`` is the command line ``climb COMMAND ...``."""

from climb.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
