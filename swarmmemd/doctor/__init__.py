"""What is wrong with this installation, and how to mend it. docs/operations.md, "What doctor finds".

`findings` is what a finding is, `patient` what is looked at, `checks` the questions, `probe` the self-test.
"""

from swarmmemd.doctor.checks import NAMES, examine
from swarmmemd.doctor.findings import Finding
from swarmmemd.doctor.patient import Patient, admit
from swarmmemd.doctor.probe import self_test

__all__ = ["NAMES", "Finding", "Patient", "admit", "examine", "self_test"]
