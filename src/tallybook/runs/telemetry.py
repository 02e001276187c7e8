"""Sends runs as OpenTelemetry traces and metrics, if the standard variables ask for it.

Nothing of OpenTelemetry is imported otherwise. Spans and metrics are sent by threads in the background, so a collector
that is down neither slows nor fails a run; it costs one warning, and up to two seconds when the process ends.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cache

from tallybook.engine.events import Observer

_log = logging.getLogger(__name__)
_SIGNALS = ("TRACES", "METRICS")
_PACKAGE = "pip install 'tallybook[opentelemetry]'"


def telemetry_observers(environ: Mapping[str, str] = os.environ) -> tuple[Observer, ...]:
    """Returns an observer of one run that sends what the variables ask for; none if they ask for nothing."""
    wanted = wanted_signals(environ)
    if not wanted:
        return ()
    try:
        from tallybook.runs.telemetry_spans import RunTelemetry, pipeline
    except ImportError as error:
        _warn_once(f"OpenTelemetry is configured, but its packages are not installed ({error.name}): {_PACKAGE}")
        return ()
    endpoint = tuple(sorted((name, value) for name, value in environ.items() if name.startswith("OTEL_")))
    return (RunTelemetry(pipeline(wanted, endpoint), environ.get("TRACEPARENT")),)


def wanted_signals(environ: Mapping[str, str]) -> frozenset[str]:
    """Returns which of traces and metrics are to be sent. The exporter `otlp` is meant where an endpoint is given and
    no exporter is named; others than `otlp` and `none` are a warning."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return frozenset()
    wanted = set()
    for signal in _SIGNALS:
        variable = f"OTEL_{signal}_EXPORTER"
        endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
        default = "otlp" if any(environ.get(name) for name in endpoints) else "none"
        for exporter in (environ.get(variable) or default).split(","):
            if exporter.strip() == "otlp":
                wanted.add(signal)
            elif exporter.strip() != "none":
                _warn_once(f"{variable} names '{exporter.strip()}', which is not supported: use otlp or none")
    return frozenset(wanted)


@cache
def _warn_once(message: str) -> None:
    _log.warning(message)
