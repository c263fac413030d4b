"""The code that the chapter ``book/tensor-cores.ipynb`` runs."""
