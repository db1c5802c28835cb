"""Payments come in by a webhook, customers are looked up over HTTP, large payments are posted on: no broker needed.

    pip install 'flowsql[http]'
    python examples/webhook_alerts.py

A small server of the standard library plays the two other services, and a thread the one that sends payments.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from flowsql.table import EnvironmentSettings, TableEnvironment

PAYMENTS = [
    {"id": 1, "customer": 7, "amount": "12.50"},
    {"id": 2, "customer": 8, "amount": "950.00"},
    {"id": 3, "customer": 7, "amount": "1200.00"},
]
CUSTOMERS = {"7": "Ann", "8": "Bob"}


class Services(BaseHTTPRequestHandler):
    """``GET /customers/ID`` and ``POST /alerts``."""

    alerts: list[dict[str, Any]] = []  # noqa: RUF012
    arrived = threading.Event()

    def do_GET(self) -> None:
        """One customer."""
        self.answer({"name": CUSTOMERS[self.path.rpartition("/")[2]]})

    def do_POST(self) -> None:
        """Alerts, a JSON array."""
        self.alerts.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer({})
        if len(self.alerts) >= 2:
            self.arrived.set()

    def answer(self, value: object) -> None:
        """Say a JSON value."""
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def send(url: str, payment: dict[str, Any]) -> int:
    """Post a payment, once somebody listens; the answer's status."""
    headers = {"Authorization": f"Bearer {os.environ['HOOK_TOKEN']}"}
    while True:
        try:
            request = urllib.request.Request(url, json.dumps(payment).encode(), headers)
            with urllib.request.urlopen(request) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except urllib.error.URLError:
            time.sleep(0.05)


def main() -> None:
    """Run the job until both alerts have arrived."""
    os.environ.setdefault("HOOK_TOKEN", "correct horse battery staple")
    services = ThreadingHTTPServer(("127.0.0.1", 0), Services)
    threading.Thread(target=services.serve_forever, daemon=True).start()
    others, port = f"http://127.0.0.1:{services.server_port}", free_port()

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(f"""
        CREATE TABLE payments (id INT, customer INT, amount DECIMAL(10, 2), proc AS PROCTIME()) WITH (
          'connector' = 'webhook', 'port' = '{port}', 'path' = '/payments', 'token' = '${{env:HOOK_TOKEN}}',
          'format' = 'json')""")
    environment.execute_sql(f"""
        CREATE TABLE customers (id INT, name STRING) WITH (
          'connector' = 'http', 'url' = '{others}/customers/{{id}}', 'format' = 'json', 'lookup.cache' = 'PARTIAL',
          'lookup.partial-cache.max-rows' = '10000')""")
    environment.execute_sql(f"""
        CREATE TABLE alerts (payment INT, name STRING, amount DECIMAL(10, 2)) WITH (
          'connector' = 'http', 'url' = '{others}/alerts', 'format' = 'json',
          'sink.buffer-flush.interval' = '100 ms')""")
    job = environment.execute_sql("""
        INSERT INTO alerts
        SELECT p.id, c.name, p.amount
        FROM payments AS p JOIN customers FOR SYSTEM_TIME AS OF p.proc AS c ON p.customer = c.id
        WHERE p.amount > 500""")
    try:
        for payment in PAYMENTS:
            print(f"payment {payment['id']}: {send(f'http://127.0.0.1:{port}/payments', payment)}")
        Services.arrived.wait(60)
    finally:
        client = job.get_job_client()
        assert client is not None
        client.cancel().result()
        services.shutdown()
    for alert in Services.alerts:
        print(f"alert: {alert['name']} paid {alert['amount']:.2f}")


if __name__ == "__main__":
    main()
