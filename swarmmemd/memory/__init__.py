"""Apply: recorded events to the memory files, as often as needed, with one result.

`appends` is pure and says what is missing in a file that only grows; `worker` brings one worker's files up to
date. docs/architecture.md, "Apply".
"""
