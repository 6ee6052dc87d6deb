"""`python -m disksla` is the command `disksla`."""

import sys

from disksla.cli import main

if __name__ == "__main__":
    sys.exit(main())
