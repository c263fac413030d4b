"""What the chapter ``book/bank-conflicts.ipynb`` runs."""
