"""What a chapter shows: source, differences, tables, figures."""
