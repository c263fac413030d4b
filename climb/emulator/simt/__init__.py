"""The state of running threads: lanes and their registers, grouped by where they are in the program."""
