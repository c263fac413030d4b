"""``python -m climb.launch``, which is ``climb launch``.

Nothing imports this module: ``climb.launch`` is also the function that shows a rung's launches.
"""

import sys

from climb.cli import main

if __name__ == "__main__":
    sys.exit(main(["launch", *sys.argv[1:]]))
