# The `ntptime` that comes with an ESP32: SNTP (RFC 4330), one question and one answer.
# mypy: ignore-errors

import socket
import time as _time

import host as computer
import machine

host = "pool.ntp.org"
timeout = 1

_UNIX_FROM_NTP_S = 2208988800  # from 1900 to 1970
_EPOCH_2000_S = 946684800


def time():
    """Seconds since the port's epoch. Raises OSError."""
    address = socket.getaddrinfo(host, 123, 0, socket.SOCK_DGRAM)[0][-1]
    ask = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        ask.settimeout(timeout)
        ask.sendto(b"\x1b" + bytes(47), address)
        answer = ask.recv(48)
    finally:
        ask.close()
    seconds = int.from_bytes(answer[40:44], "big") - _UNIX_FROM_NTP_S
    return seconds - (_EPOCH_2000_S if computer.orders["epoch"] == 2000 else 0)


def settime():
    year, month, day, hour, minute, second, weekday = _time.gmtime(time())[:7]
    machine.RTC().datetime((year, month, day, weekday, hour, minute, second, 0))
