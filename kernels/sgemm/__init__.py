"""What the chapter ``book/sgemm.ipynb`` runs."""
