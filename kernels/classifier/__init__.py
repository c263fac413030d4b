"""What the chapter ``book/classifier.ipynb`` runs."""
