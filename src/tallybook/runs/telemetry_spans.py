"""The spans and metrics of a run, and the pipeline that sends them. Importing it imports OpenTelemetry."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tallybook.engine.events import (
    CheckTested,
    Event,
    Failed,
    OutputWritten,
    RunEnded,
    RunOpened,
    RunRefused,
    StepPlanned,
    StepStarted,
    Warned,
)
from tallybook.errors import ProblemError, exit_of
from tallybook.model.run import OutputResult, Run
from tallybook.operations.base import Step

_log = logging.getLogger("tallybook.runs.telemetry")
_NAME = "tallybook"
_SECONDS_TO_FLUSH = 2


@dataclass(frozen=True)
class Pipeline:
    """What makes spans and metrics. One that is not wanted makes nothing."""

    tracer: trace.Tracer
    meter: metrics.Meter
    flusher: Flusher | None = None
    """None if the program that we run in sends them."""


@cache
def pipeline(wanted: frozenset[str], settings: tuple[tuple[str, str], ...]) -> Pipeline:
    """Returns the pipeline for these signals and settings; that of the program we run in, if it has one."""
    tracers: trace.TracerProvider = trace.NoOpTracerProvider()
    meters: metrics.MeterProvider = metrics.NoOpMeterProvider()
    own: list[TracerProvider | MeterProvider] = []
    resource = Resource({SERVICE_NAME: _NAME, SERVICE_VERSION: version(_NAME)}).merge(_given_resource())
    if "TRACES" in wanted:
        tracers = trace.get_tracer_provider()
        if not isinstance(tracers, TracerProvider):
            tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
            tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            own.append(tracers)
    if "METRICS" in wanted:
        meters = metrics.get_meter_provider()
        if not isinstance(meters, MeterProvider):
            reader = PeriodicExportingMetricReader(OTLPMetricExporter())
            meters = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
            own.append(meters)
    flusher = Flusher(own) if own else None
    return Pipeline(tracers.get_tracer(_NAME, version(_NAME)), meters.get_meter(_NAME, version(_NAME)), flusher)


def _given_resource() -> Resource:
    """Returns the resource that the variables describe, without the name that stands for none."""
    given = Resource.create()
    named = {key: value for key, value in given.attributes.items() if not str(value).startswith("unknown_service")}
    return Resource(named, given.schema_url)


class _OneWarning(logging.Handler):
    """Turns what OpenTelemetry logs into one warning: a collector that is down would fill the screen."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._said:
            self._said = True
            _log.warning("traces or metrics could not be sent: %s", record.getMessage().partition("\n")[0])


class Flusher:
    """Sends what is waiting when the process ends, for a short time. Its thread is started before: a process that is
    ending may not start one."""

    def __init__(self, providers: list[TracerProvider | MeterProvider]) -> None:
        self._providers = providers
        self._asked, self._done = threading.Event(), threading.Event()
        of_sdk = logging.getLogger("opentelemetry")
        of_sdk.handlers, of_sdk.propagate = [_OneWarning()], False
        threading.Thread(target=self._work, daemon=True).start()
        atexit.register(self.flush)

    def flush(self, seconds: float = _SECONDS_TO_FLUSH) -> bool:
        """Sends what is waiting. Returns False if that takes longer."""
        self._done.clear()
        self._asked.set()
        return self._done.wait(seconds)

    def _work(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            for provider in self._providers:
                with suppress(Exception):  # the SDK has logged what went wrong
                    provider.force_flush()
            self._done.set()


class RunTelemetry:
    """An observer of one run after the other: a span for each run and each operation, and metrics."""

    def __init__(self, pipeline: Pipeline, parent: str | None = None) -> None:
        self._pipeline = pipeline
        self._parent = TraceContextTextMapPropagator().extract({"traceparent": parent}) if parent else None
        self._run: Span = trace.INVALID_SPAN
        self._step: Span | None = None
        self._since = 0.0
        self._about: dict[str, Any] = {}
        meter = pipeline.meter
        self._rows = meter.create_counter("tallybook.rows.written", "{row}", "Rows that outputs wrote.")
        self._runs = meter.create_counter("tallybook.runs", "{run}", "Runs that ended or were refused.")
        self._failures = meter.create_counter("tallybook.run.failures", "{run}", "Runs that failed or were refused.")
        self._duration = meter.create_histogram("tallybook.run.duration", "s", "How long a run took.")
        self._writing = meter.create_histogram("tallybook.output.duration", "s", "How long an output took.")

    def __call__(self, event: Event) -> None:
        match event:
            case RunRefused(project_id, period, error):
                self._open({"tallybook.project.id": project_id, "tallybook.period": period})
                self._end("refused", error)
            case RunOpened(run):
                self._open(_attributes(run))
            case StepStarted(step):
                self._end_step()
                context = trace.set_span_in_context(self._run)
                name = f"{step.type} {step.seq}"
                self._step = self._pipeline.tracer.start_span(name, context, attributes=_of_step(step))
            case StepPlanned():
                self._end_step()
            case CheckTested(step, result):
                counts = {"tallybook.check.tested": result.tested, "tallybook.check.failed": result.failed}
                self._run.add_event("check", _of_step(step) | counts)
            case OutputWritten(step, result, seconds):
                self._written(step, result, seconds)
            case Warned(message):
                self._run.add_event("warning", {"message": message})
            case Failed(_, problems):
                if self._step is not None and problems:
                    self._step.set_status(Status(StatusCode.ERROR, problems[0].message))
                    self._step.set_attribute("error.type", problems[0].type)
                self._end_step()
            case RunEnded(_, status, error):
                self._end(status, error)

    def _open(self, attributes: dict[str, Any]) -> None:
        self._about = {key: attributes[key] for key in ("tallybook.project.id",)}
        self._since = time.monotonic()
        self._run = self._pipeline.tracer.start_span("tallybook run", self._parent, attributes=attributes)

    def _written(self, step: Step, result: OutputResult | None, seconds: float) -> None:
        rows = result.rows_written if result is not None else None
        about = self._about | {"tallybook.operation.seq": step.seq}
        if rows is not None:
            self._rows.add(rows, about)
            if self._step is not None:
                self._step.set_attribute("tallybook.rows_written", rows)
        if result is not None and self._step is not None:
            self._step.set_attribute("tallybook.output.location", result.location)
        self._writing.record(seconds, about)
        self._end_step()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.end()
        self._step = None

    def _end(self, status: str, error: BaseException | None) -> None:
        self._end_step()
        about = self._about | {"tallybook.run.status": status}
        if error is not None:
            problem = error.problem if isinstance(error, ProblemError) and error.problems else None
            about["error.type"] = problem.type if problem is not None else type(error).__name__
            self._run.set_status(Status(StatusCode.ERROR, problem.message if problem is not None else str(error)))
            self._failures.add(1, about)
        self._run.set_attributes(about | {"tallybook.exit_code": exit_of(error).code})
        self._run.end()
        self._runs.add(1, about)
        self._duration.record(time.monotonic() - self._since, about)


def _attributes(run: Run) -> dict[str, Any]:
    return {
        "tallybook.run.id": run.id,
        "tallybook.run.attempt": run.attempt,
        "tallybook.run.sandbox": run.sandbox,
        "tallybook.project.id": run.project_id,
        "tallybook.project.version": run.project_version,
        "tallybook.period": run.period,
    }


def _of_step(step: Step) -> dict[str, Any]:
    return {
        "tallybook.operation.seq": step.seq,
        "tallybook.operation.name": step.name,
        "tallybook.operation.type": step.type,
    }
