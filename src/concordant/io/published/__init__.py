"""Files as evaluations publish them, known by what stands in them: votes, or scores of systems on tasks."""
