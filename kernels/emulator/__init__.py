"""What the chapter ``book/emulator.ipynb`` runs."""
