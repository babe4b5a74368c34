"""A board without hardware: the firmware itself on MicroPython, with a real littlefs flash."""
