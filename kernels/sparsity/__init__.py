"""The code that the chapter ``book/sparsity.ipynb`` runs."""
