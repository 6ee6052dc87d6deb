"""Say why a cloud disk is slow: watch it at 100 ms and hold it against what it was sold as."""
