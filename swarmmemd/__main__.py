"""`python -m swarmmemd` is the command `swarmmemd`."""

from swarmmemd.cli.main import main

main()
