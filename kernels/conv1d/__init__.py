"""What the chapter ``book/conv1d.ipynb`` runs."""
