"""What the chapter ``book/tiling.ipynb`` runs."""
