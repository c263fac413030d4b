"""The code that the chapter ``book/first-kernel.ipynb`` runs: two exercises."""
