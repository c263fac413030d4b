"""What the chapter ``book/warp-shuffles.ipynb`` runs."""
