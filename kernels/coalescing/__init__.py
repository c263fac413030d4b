"""What the chapter ``book/coalescing.ipynb`` runs."""
