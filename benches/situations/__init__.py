"""What the product says of the same disk in each place where a person reads it."""
