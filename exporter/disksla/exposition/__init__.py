"""What is known, as metric families and as a page."""
