"""One module per command: its options, what it prints, its exit status."""
