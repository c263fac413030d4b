"""Translation: from a kernel in PTX to one generated Python function per basic block."""
