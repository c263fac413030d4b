"""The CUDA of the book: a folder for each chapter, in it a folder for each ladder, its exercises and its exhibits."""
