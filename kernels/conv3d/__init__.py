"""The code that the chapter ``book/conv3d.ipynb`` runs."""
