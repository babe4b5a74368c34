"""The kinds of jobs that people need, each in a file of its own."""

from typing import Any

from gateway.handlers import (
    daily_report,
    import_readings,
    recalculate_chart,
    reprocess_readings,
    send_email,
    send_webhook,
)
from gateway.kinds import Kinds

REGISTRY = "gateway.handlers:registry"


def registry(settings: dict[str, Any]) -> Kinds:
    """Return every kind by its name.

    Args:
        settings: JSON; `folder` is where the database stands, the rest is `Config.for_jobs`.
    """
    kinds = [
        daily_report.kind(settings),
        import_readings.kind(settings),
        recalculate_chart.kind(settings),
        reprocess_readings.kind(settings),
        send_email.kind(settings),
        send_webhook.kind(settings),
    ]
    return {kind.name: kind for kind in kinds}
