"""Recall: readers of the memory files and the journal. Nothing here writes but the index, which is disposable."""
