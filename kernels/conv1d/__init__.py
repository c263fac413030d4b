"""The code that the chapter ``book/conv1d.ipynb`` runs."""
