"""Evaluations of systems: scores on tasks, judges beside people, what changed between two boards, what would."""
