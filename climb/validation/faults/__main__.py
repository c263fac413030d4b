"""``python -m climb.validation.faults``: the command of this package; ``--help`` lists its options."""

import argparse

from climb.validation.faults import command

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m climb.validation.faults", description=command.__doc__)
    command.add_arguments(parser)
    raise SystemExit(command.run(parser.parse_args()))
