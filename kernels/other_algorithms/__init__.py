"""What the chapter ``book/other-algorithms.ipynb`` runs."""
