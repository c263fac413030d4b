"""What the chapter ``book/light-speed.ipynb`` runs."""
