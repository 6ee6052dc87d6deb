"""The command line: one module per command; helpers have an underscore.

In it: `cli` (the list of commands, arguments to exit status), a module for each command with
`add_arguments` and `run`, and `doctor_checks` (what `disksla doctor` examines).
It may use: every room. Nothing uses it. Start reading in `cli`, then in the module of a command.
"""
