"""Traces and metrics of runs, received by a real OTLP/HTTP server on this machine."""

from __future__ import annotations

import gzip
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.kit.workspaces import Books

from tallybook.errors import RunError
from tallybook.runs.telemetry import telemetry_observers, wanted_signals
from tallybook.runs.telemetry_spans import RunTelemetry

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class Collector:
    """An OTLP receiver that keeps spans and the points of metrics."""

    url: str = ""
    spans: list[Any] = field(default_factory=list)
    points: dict[str, list[Any]] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.services.add(values(traced.resource)["service.name"])
                self.spans += [span for scope in traced.scope_spans for span in scope.spans]
        else:
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in (metric for scope in measured.scope_metrics for metric in scope.metrics):
                    data = metric.sum if metric.HasField("sum") else metric.histogram
                    self.points[metric.name] = list(data.data_points)


def values(item: Any) -> dict[str, Any]:
    """The attributes of a span, a point or a resource."""
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in item.attributes}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    received = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.take(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("TRACEPARENT", PARENT)
        yield received
        server.shutdown()


def flush() -> None:
    [observer] = telemetry_observers()
    assert isinstance(observer, RunTelemetry) and observer._pipeline.flusher is not None
    assert observer._pipeline.flusher.flush(60)


def test_a_run_is_a_trace_with_metrics(active: Books, collector: Collector) -> None:
    run = active.run().run
    with pytest.raises(RunError):
        active.run(period="2026-03")
    flush()
    spans = {span.name: span for span in collector.spans if values(span).get("tallybook.period") != "2026-03"}
    assert list(spans) == ["update 10", "delete 20", "output 30", "aggregate 40", "output 50", "tallybook run"]
    root = spans.pop("tallybook run")
    assert root.trace_id.hex() == PARENT.split("-")[1] and root.parent_span_id.hex() == PARENT.split("-")[2]
    assert {span.parent_span_id for span in spans.values()} == {root.span_id}
    about = values(root)
    assert (about["tallybook.run.id"], about["tallybook.run.status"]) == (run.id, "completed")
    assert (about["tallybook.project.id"], about["tallybook.period"], about["tallybook.exit_code"]) == (
        "close",
        "2026-01",
        0,
    )
    assert values(spans["output 30"])["tallybook.rows_written"] == 2
    assert collector.services == {"tallybook"}
    failed = next(span for span in collector.spans if values(span).get("tallybook.period") == "2026-03")
    assert (values(failed)["error.type"], values(failed)["tallybook.exit_code"]) == ("DataNotFound", 1)
    assert failed.status.code == 2
    rows = {
        values(point)["tallybook.operation.seq"]: point.as_int for point in collector.points["tallybook.rows.written"]
    }
    assert rows == {30: 2, 50: 5}
    assert [point.as_int for point in collector.points["tallybook.run.failures"]] == [1]
    assert sum(point.as_int for point in collector.points["tallybook.runs"]) == 2
    assert sum(point.count for point in collector.points["tallybook.run.duration"]) == 2


def test_a_refused_run_is_a_failure(books: Books, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "month-close")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    with pytest.raises(RunError):
        books.run("close", "2026-13")
    flush()
    [span] = collector.spans
    assert values(span)["tallybook.run.status"] == "refused"
    assert (collector.services, collector.points) == ({"month-close"}, {})


def test_a_collector_that_is_down_is_one_warning(
    active: Books, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with caplog.at_level(logging.WARNING):
        assert active.run().run.status == "completed"
        flush()
    sent = [record.getMessage() for record in caplog.records if "could not be sent" in record.getMessage()]
    assert len(sent) == 1


def test_a_collector_that_never_answers_does_not_keep_the_process(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        with pytest.raises(RunError):
            books.run("close", "2026-13")
        [observer] = telemetry_observers()
        assert isinstance(observer, RunTelemetry) and observer._pipeline.flusher is not None
        assert observer._pipeline.flusher.flush(0.2) is False


@pytest.mark.parametrize(
    ("environ", "signals"),
    [
        ({}, ""),
        ({"OTEL_SERVICE_NAME": "x"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, "TRACES METRICS"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, "METRICS"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, "TRACES"),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, "METRICS"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, ""),
    ],
    ids=str,
)
def test_the_standard_variables(environ: dict[str, str], signals: str) -> None:
    assert wanted_signals(environ) == set(signals.split())


_WITHOUT_PACKAGE = """
import sys
sys.modules["opentelemetry.sdk"] = None
from tallybook.cli.screen import prepare
from tallybook.runs.telemetry import telemetry_observers
prepare()
print(telemetry_observers({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}))
print(telemetry_observers({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}))
"""


def test_without_the_package_it_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT_PACKAGE], capture_output=True, text=True, check=True)
    assert done.stdout == "()\n()\n"
    [line] = done.stderr.splitlines()
    assert line.startswith("warning: OpenTelemetry is configured") and "pip install 'tallybook[opentelemetry]'" in line


def test_nothing_is_imported_when_it_is_off() -> None:
    code = (
        "import sys; from tallybook.runs.telemetry import telemetry_observers; assert telemetry_observers({}) == ()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
