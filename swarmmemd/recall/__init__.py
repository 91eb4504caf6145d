"""Recall: readers of the memory files and the journal. Nothing here writes."""
