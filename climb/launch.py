"""``python -m climb.launch``: the command of :mod:`climb.distributed.launcher`.

Nothing imports this module: ``climb.launch`` is also the function that shows a rung's launches.
"""

import sys

from climb.distributed.launcher import main

if __name__ == "__main__":
    sys.exit(main())
