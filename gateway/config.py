"""Settings: defaults < TOML file < environment < flags, in one frozen, checked object."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from gateway import tables
from gateway.errors import Misconfigured

PREFIX = "FIELDPOST_"
FILE_VARIABLE = "FIELDPOST_CONFIG"
TOKEN_VARIABLE = "FIELDPOST_TOKEN"  # what `make flash` and others ask the gateway with; no setting
MEMORY = ":memory:"

_YES = {"1", "true", "yes", "on"}
_NO = {"0", "false", "no", "off"}
_CALLED = {int: "a whole number", float: "a number", bool: "true or false"}


def _setting(
    default: object,
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
    one_of: tuple[str, ...] = (),
    is_list: bool = False,
) -> Any:
    meta = {"help": help, "least": least, "most": most, "one_of": one_of, "is_list": is_list}
    return field(default=default, metadata=meta)


def _table(type: Any, help: str) -> dict[str, Any]:
    return {"help": help, "table": type}


@dataclass(frozen=True)
class Config:
    """Everything that can be set. Each name is a TOML key, `FIELDPOST_NAME` and `--name` alike;
    those that are tables stand in the TOML file only.

    Raises:
        Misconfigured: a value can not be used; the message says where it stands and what can.
    """

    db: str = _setting("data/fieldpost.db", "database file, or :memory: for lessons")
    host: str = _setting("127.0.0.1", "address to listen on; 0.0.0.0 for the whole network")
    port: int = _setting(8080, "port to listen on; 0 takes any free one", least=0, most=65535)
    open: bool = _setting(False, "let everybody on this machine in without a key")
    open_lan: bool = _setting(False, "let everybody who can reach this machine in without a key")
    workers: int = _setting(
        4, "jobs that this process does at a time; 0 takes in only", least=0, most=64
    )
    keep_done_days: float = _setting(
        7.0, "days for which jobs that were done or discarded are kept", least=0, most=36500
    )
    keep_failed_days: float = _setting(
        30.0, "days for which failed jobs are kept", least=0, most=36500
    )
    keep_events_days: float = _setting(
        30.0, "days for which the moves of jobs are kept", least=0, most=36500
    )
    tls_cert: str | None = _setting(None, "certificate chain (PEM) to serve HTTPS with")
    tls_key: str | None = _setting(None, "private key (PEM) of that certificate")
    serial: tuple[str, ...] = _setting(
        (), "serial ports with boards on them, or auto for every USB one", is_list=True
    )
    allow_plain_bearer: bool = _setting(
        False, "take devices' bearer tokens over plain HTTP from other machines too"
    )
    host_names: tuple[str, ...] = _setting(
        (), "more names by which browsers ask for this gateway with --open-lan", is_list=True
    )
    requests_per_minute: int = _setting(
        6000, "deliveries that a device may make in a minute; 0 for no limit", least=0, most=10**9
    )
    readings_per_minute: int = _setting(
        240_000, "readings that a device may deliver in a minute; 0: no limit", least=0, most=10**9
    )
    max_sensors: int = _setting(
        256, "sensors beyond which a device's readings of another are rejected", least=1, most=10**6
    )
    max_devices: int = _setting(
        10_000, "devices beyond which one that nobody registered is refused", least=1, most=10**6
    )
    max_body_bytes: int = _setting(
        16 * 1024, "largest body of readings, inflated", least=1024, most=1024**2
    )
    body_timeout_s: float = _setting(10.0, "time for a whole body to arrive", least=0.1, most=300)
    min_free_bytes: int = _setting(
        64 * 1024**2, "free disk below which readings are put off with 503", least=0, most=2**50
    )
    # Twice this and the closing of the database must fit into the 10 s that a stop may take.
    stop_timeout_s: float = _setting(
        3.0, "time that requests under way have when the gateway stops", least=0, most=4
    )
    # Requests end meanwhile; what is then under way is given back before the last resort comes.
    drain_timeout_s: float = _setting(
        5.0, "time that jobs under way have when the process stops", least=0, most=7
    )
    log_level: str = _setting(
        "info", "least grave message to log", one_of=("debug", "info", "warning", "error")
    )
    log_format: str = _setting("text", "form of a log line", one_of=("text", "json"))
    calibration: tables.Calibration = field(
        default_factory=dict,
        metadata=_table(tables.Calibration, "scale and offset of sensors, by device and sensor"),
    )
    smtp: tables.Smtp | None = field(
        default=None, metadata=_table(tables.Smtp, "the server that takes mail")
    )
    webhook: tables.Webhook | None = field(
        default=None, metadata=_table(tables.Webhook, "the key that webhooks are signed with")
    )
    retention: tables.Retention | None = field(
        default=None, metadata=_table(tables.Retention, "how long what was measured is kept")
    )
    schedule: tables.Schedule = field(
        default_factory=list, metadata=_table(tables.Schedule, "jobs to be asked for periodically")
    )
    alarms: tables.Alarms = field(
        default_factory=tables.Alarms,
        metadata=_table(tables.Alarms, "when something is worth an alarm, and who is told"),
    )
    sources: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for setting in settings():
            value = getattr(self, setting.name)
            if not _fits(setting, value):
                raise _refusal(setting, value, self.came_from(setting.name))
        if (self.tls_cert is None) != (self.tls_key is None):
            raise Misconfigured("give both --tls-cert and --tls-key, or neither")
        if self.open_lan:  # says everything that --open says, and more
            object.__setattr__(self, "open", True)
            object.__setattr__(self, "sources", self.sources | {"open": self.came_from("open_lan")})

    @property
    def folder(self) -> Path | None:
        """Return the folder of the database, where the keys stand too; None in memory."""
        return None if self.db == MEMORY else Path(self.db).parent

    def for_jobs(self) -> dict[str, Any]:
        """Return what the kinds of jobs are made of, as JSON has it; it goes to child processes."""
        return {
            "folder": None if self.folder is None else str(self.folder),
            "min_free_bytes": self.min_free_bytes,
            "calibration": msgspec.to_builtins(self.calibration),
            "smtp": msgspec.to_builtins(self.smtp),
            "webhook_key": self.webhook and self.webhook.key,
        }

    def came_from(self, name: str) -> str:
        """Return where the setting was said, for a person: `--port`, `FIELDPOST_PORT`, …"""
        return self.sources.get(name, name)

    @classmethod
    def load(
        cls, flags: Mapping[str, object], environ: Mapping[str, str], path: Path | None = None
    ) -> "Config":
        """Read the settings from where they stand; what comes later wins.

        Args:
            flags: setting -> text or bool, only those that were given.
            environ: the process's environment; only `FIELDPOST_…` is looked at.
            path: a TOML file, else the one that `FIELDPOST_CONFIG` names, else none.

        Raises:
            Misconfigured: unknown key, wrong type or value, unreadable file.
        """
        values: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for layer in _layers(flags, environ, path):
            for key, value in layer.given.items():
                setting = _known(key, layer)
                name = sources[key] = layer.name_of(key) + layer.where
                if "table" in setting.metadata:
                    type_ = setting.metadata["table"]
                    values[key] = tables.converted(key, value, type_, layer.where)
                else:
                    value = _as_list(value) if setting.metadata["is_list"] else value
                    values[key] = _parsed(setting, value, name) if layer.is_text else value
        return cls(**values, sources=sources)


def settings() -> list[Field[Any]]:
    """Return the fields of Config that a person can set everywhere, in order."""
    return [one for one in fields(Config) if one.metadata and "table" not in one.metadata]


def table_settings() -> list[Field[Any]]:
    """Return the fields of Config that are tables of the file, in order."""
    return [one for one in fields(Config) if "table" in one.metadata]


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return PREFIX + name.upper()


def expected(setting: Field[Any]) -> str:
    """Say what the setting takes: `a whole number from 0 to 65535`."""
    meta = setting.metadata
    if meta["one_of"]:
        return "one of " + ", ".join(meta["one_of"])
    called = "texts" if meta["is_list"] else _CALLED.get(_kind(setting), "text")
    return called if meta["least"] is None else f"{called} from {meta['least']} to {meta['most']}"


class _Layer(NamedTuple):
    given: Mapping[str, object]
    name_of: Callable[[str], str]
    where: str
    is_text: bool


def _layers(
    flags: Mapping[str, object], environ: Mapping[str, str], path: Path | None
) -> list[_Layer]:
    said = {key: value for key, value in environ.items() if key.startswith(PREFIX)}
    named = said.pop(FILE_VARIABLE, None)
    said.pop(TOKEN_VARIABLE, None)
    path = path or (Path(named) if named else None)
    lowered = {key.removeprefix(PREFIX).lower(): value for key, value in said.items()}
    return [
        _Layer(_read(path), str, f" in {path}", False),
        _Layer(lowered, variable, "", True),
        _Layer(flags, flag, "", True),
    ]


def _read(path: Path | None) -> Mapping[str, object]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misconfigured(f"configuration {path} can not be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"configuration {path} is not TOML: {error}") from error


def _known(key: str, layer: _Layer) -> Field[Any]:
    by_name = {setting.name: setting for setting in settings() + table_settings()}
    if layer.is_text and key in by_name and "table" in by_name[key].metadata:
        raise Misconfigured(
            f"{layer.name_of(key)} can not be said so: {key} is a table of the file"
        )
    if key in by_name:
        return by_name[key]
    near = get_close_matches(key, by_name, n=1, cutoff=0.5)
    hint = f"did you mean {layer.name_of(near[0])}?" if near else f"there are: {', '.join(by_name)}"
    raise Misconfigured(f"{layer.name_of(key)}{layer.where} is not a setting; {hint}")


def _kind(setting: Field[Any]) -> type:
    return setting.type if isinstance(setting.type, type) else str  # `str | None` is no type


def _as_list(value: object) -> object:
    """Return a list as a setting keeps it: of a file, of flags, or a text with commas."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    return tuple(value) if isinstance(value, list) else value


def _parsed(setting: Field[Any], value: object, name: str) -> object:
    """Return the text of a flag or variable as the setting's type, or as it is if it is none."""
    kind = _kind(setting)
    if not isinstance(value, str) or kind is str:
        return value
    if kind is bool:
        word = value.lower()
        return word in _YES if word in _YES | _NO else value
    try:
        return cast(object, kind(value))
    except ValueError:
        raise _refusal(setting, value, name) from None


def _fits(setting: Field[Any], value: object) -> bool:
    kind, meta = _kind(setting), setting.metadata
    if meta["is_list"]:
        return isinstance(value, tuple) and all(map(_is_text, value))
    if value is None:
        return setting.default is None
    # true is an int to Python, and 3 is a fine float: neither is what the reader of a file expects.
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if isinstance(value, str):
        one_of = meta["one_of"] or (value,)
        return kind is str and _is_text(value) and value in one_of
    if not isinstance(value, (int, float) if kind is float else kind):
        return False
    return bool(meta["least"] <= cast(float, value) <= meta["most"])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and value != ""


def _refusal(setting: Field[Any], value: object, name: str) -> Misconfigured:
    return Misconfigured(
        f"{name} is {value!r}; give {expected(setting)} ({setting.metadata['help']})"
    )
