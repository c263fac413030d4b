"""The stubs that ``climb new`` makes: names, files, texts, and careful insertions into Python modules and notebooks."""
