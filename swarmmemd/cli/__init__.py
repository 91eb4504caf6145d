"""The command line: arguments to plain functions that return an exit code."""
