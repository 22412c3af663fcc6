"""From files, tables and stores to preferences."""
