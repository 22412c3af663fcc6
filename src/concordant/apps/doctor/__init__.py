"""What a file is, what it supports, what stops it, and what to run next."""
