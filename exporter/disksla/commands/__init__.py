"""One module per command; helpers have an underscore."""
