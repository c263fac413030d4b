"""What the chapter ``book/conv2d.ipynb`` runs."""
