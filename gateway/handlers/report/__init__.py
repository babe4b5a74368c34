"""A day of all devices as a page and a table: when it is, what it says, how it looks."""
