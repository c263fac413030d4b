"""The code that the chapter ``book/sgemm.ipynb`` runs."""
