"""``python -m climb.validation.profiles``: take a profile on this GPU."""

import argparse

from climb.validation.profiles import divergence, occupancy

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m climb.validation.profiles", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for module in (divergence, occupancy):
        command = commands.add_parser(module.__name__.rsplit(".", 1)[1], description=module.__doc__.splitlines()[0])
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    args = parser.parse_args()
    raise SystemExit(args.run(args))
