"""What people and programs are told of a state.

In it: `explanation` (conditions and sentences), `api` (the document that the daemon answers, and
its client), `top` (the screen of `disksla top`), pages as data (`page`) and as text, tables of
limits.
It may use: `state` and what is below it. Start reading in `explanation.condition`.
"""
