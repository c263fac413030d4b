"""Coalescing: the ladder strided, exercises, exhibits, and the shifted copy whose sectors the chapter counts."""
