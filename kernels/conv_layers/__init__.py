"""The code that the chapter ``book/conv-layers.ipynb`` runs."""
