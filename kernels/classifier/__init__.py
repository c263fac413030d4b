"""The code that the chapter ``book/classifier.ipynb`` runs."""
