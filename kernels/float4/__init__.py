"""What the chapter ``book/float4.ipynb`` runs."""
