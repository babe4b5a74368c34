"""Puts the firmware on a board, and helps when a board does not answer."""
