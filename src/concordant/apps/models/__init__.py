"""Fitted rankers on disk: a directory of JSON and plain arrays whose bytes are checked when it is read."""
