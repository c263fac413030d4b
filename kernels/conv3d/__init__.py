"""What the chapter ``book/conv3d.ipynb`` runs."""
