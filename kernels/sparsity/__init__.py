"""What the chapter ``book/sparsity.ipynb`` runs."""
