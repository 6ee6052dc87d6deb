"""What others can put before disksla, and the law that holds whatever they put there."""
