"""What the chapter ``book/coarsening.ipynb`` runs."""
