"""The experiments of the papers, run again: one file each, and what they share."""
