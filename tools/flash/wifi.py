"""The Wi-Fi's name and password: asked once, kept in data/wifi.json for its owner alone."""

import json
import os
from pathlib import Path

from tools.flash import ask
from tools.flash.trouble import Trouble

Wifi = dict[str, str]


def known(data: Path) -> Wifi | None:
    try:
        kept = json.loads((data / "wifi.json").read_text(encoding="utf-8"))
        return {"ssid": str(kept["ssid"]), "password": str(kept["password"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def asked(data: Path) -> Wifi:
    """Ask for it and keep it. Raises Trouble if nobody is there to ask."""
    if not ask.somebody_there():
        raise Trouble("no_wifi")
    ssid = ask.text("The Wi-Fi's name (2.4 GHz): ")
    wifi = {"ssid": ssid, "password": ask.secret(f"The password of {ssid}: ")}
    keep(data, wifi)
    return wifi


def keep(data: Path, wifi: Wifi) -> None:
    data.mkdir(parents=True, exist_ok=True)
    draft = data / ".wifi.json.new"
    draft.unlink(missing_ok=True)
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(opened, "w", encoding="utf-8") as file:
        json.dump(wifi, file)
    draft.replace(data / "wifi.json")
