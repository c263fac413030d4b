"""Show results in a chapter: source code, diffs, tables, figures and numbers for prose."""
