"""What the chapter ``book/tensor-cores.ipynb`` runs."""
