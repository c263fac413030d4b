"""What the chapter ``book/divergence.ipynb`` runs."""
