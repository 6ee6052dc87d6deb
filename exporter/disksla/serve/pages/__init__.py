"""The pages of the daemon, and the routes of everything that it serves."""
