"""The daemon.

In it: `daemon` (puts the parts together, starts and stops them), `metrics` (a snapshot to the page
of metrics), `pages` (routes and pages for people) and `http_server`.
It may use: every room but `commands`; of `measure` only what the daemon does by itself.
Start reading in `daemon`, then `metrics.collector`.
"""
