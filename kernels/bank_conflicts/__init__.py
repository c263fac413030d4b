"""Bank conflicts: the ladder transpose, exercises, exhibits, and a transpose through a tile of any pitch."""
