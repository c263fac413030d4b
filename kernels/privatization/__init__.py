"""What the chapter ``book/privatization.ipynb`` runs."""
