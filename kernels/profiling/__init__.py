"""The code that the chapter ``book/profiling.ipynb`` runs."""
