"""Evaluations of systems: scores on tasks, judges beside people, what changed between boards, what would change one."""
