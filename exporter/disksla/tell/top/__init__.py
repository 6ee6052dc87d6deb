"""`disksla top`: all disks live on a terminal, those with problems first.

- `screen`: disks, view and size of the terminal to lines, or to plain text; `columns` and
  `disk_screen` are its parts.
- `line`: styled text, strips and curves; `view`: what is shown, and how keys change it.
- `sources`: the daemon, or our own sampler.
- `terminal`: the terminal, which is restored at the end.
"""

from disksla.tell.top.line import Look, in_ascii
from disksla.tell.top.screen import block
