"""Execution: run the blocks of a launch, split groups of lanes that diverge, and join those that reconverge."""
