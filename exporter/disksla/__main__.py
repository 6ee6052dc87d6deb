"""Run the command line: `python -m disksla` does the same as `disksla`."""

import sys

from disksla.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
