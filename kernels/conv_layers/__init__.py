"""What the chapter ``book/conv-layers.ipynb`` runs."""
