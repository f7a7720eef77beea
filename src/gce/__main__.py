"""``python -m gce`` is the command ``gce``."""

from gce.cli import main

main()
