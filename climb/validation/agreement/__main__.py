"""The process that ncu profiles for ``climb agreement``: it launches the pickled steps of a file once each."""

import pickle
import sys
from pathlib import Path

from climb.validation.agreement.measuring import launch_all

if __name__ == "__main__":
    launch_all(pickle.loads(Path(sys.argv[1]).read_bytes()))
