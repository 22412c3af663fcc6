"""From a file or a table to named columns: formats, layouts, and what is said of rows that cannot be read."""
