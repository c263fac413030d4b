"""What the chapter ``book/occupancy.ipynb`` runs."""
