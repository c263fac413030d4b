"""The code that the chapter ``book/other-algorithms.ipynb`` runs."""
