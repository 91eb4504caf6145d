"""Apply: recorded events to the memory files, as often as needed, with one result.

`appends` is pure and says what is missing in a file that only grows; `growing` and `summaries` write the two
kinds of files; `worker` brings one worker's files up to date; `readback` reads them where there is no journal.
docs/architecture.md, "Apply".
"""
