"""What the chapter ``book/profiling.ipynb`` runs."""
