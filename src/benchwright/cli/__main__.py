"""``python -m benchwright.cli``."""

from benchwright.cli import main

main()
