"""The service: its definition for systemd and launchd, and putting that in place.

`mark`, `unit` and `agent` are pure: values to the text of a file. `program` finds the executable, `systemd` and
`launchd` speak to the two managers, `transaction` installs and uninstalls with either. docs/operations.md.
"""
