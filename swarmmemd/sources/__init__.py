"""The sources: files of others that are read, never written. One module a kind.

Each has a pure half, bytes to a value or `Unreadable`, and is read through `sources.file.FileSource`.
docs/contracts.md, "Sources"; a new source is a new module here and a part of `Observation`.
"""
