"""Secrets in texts of others, replaced before such a text is written where more people read it.

Pure: text in, safe text out. docs/redaction.md, "What is found".
"""

from swarmmemd.redact.redactor import KINDS, Redacted, Redactor

__all__ = ["KINDS", "Redacted", "Redactor"]
