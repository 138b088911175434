"""A development line of foldline: filled once, served, asked."""

import asyncio
import json
import os
import signal
import subprocess
import time

import nats
import pyarrow as pa

DEADLINE = 120  # seconds; for a machine that is far too busy


class Line:
    def __init__(self, binary, data):
        self.binary, self.data = binary, data
        self.graph = os.path.join(data, "graph")
        self.config = None  # a settings file

    def run(self, *args):
        """One command of the tool on this line; its output as bytes."""
        done = subprocess.run([self.binary, *self.flags(), *args], capture_output=True, timeout=600)
        if done.returncode != 0:
            raise RuntimeError(f"foldline {' '.join(args)} ended with {done.returncode}:\n{done.stderr.decode()[-4000:]}")
        return done.stdout

    def flags(self):
        return ["--data", self.data, *(["--config", self.config] if self.config else [])]

    def fill(self, inputs):
        """foldline dev --once over NDJSON files: table key → path."""
        pairs = [arg for table, path in inputs.items() for arg in ("--input", f"{table}={path}")]
        return self.run("dev", "--once", *pairs)

    def heads(self):
        return json.loads(self.run("heads", "--json"))

    def table(self, table):
        """What the heads say of one table."""
        return next(t for t in self.heads()["tables"] if t["table"] == table)

    def scan(self, table):
        with pa.ipc.open_stream(self.run("scan", table, "--format", "arrow")) as stream:
            return stream.read_all()

    def serve(self):
        return Serving(self)


class Serving:
    """The line in a process of its own, as a context manager; request() talks to it over NATS."""

    def __init__(self, line):
        self.line = line

    def __enter__(self):
        url_file = os.path.join(self.line.data, "nats.url")
        if os.path.exists(url_file):
            os.remove(url_file)
        self.log = open(os.path.join(self.line.data, "serve.log"), "wb")
        self.process = subprocess.Popen([self.line.binary, *self.line.flags(), "dev"], stdout=self.log, stderr=self.log)
        until = time.monotonic() + DEADLINE
        while not os.path.exists(url_file):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"foldline dev did not come up (exit code {self.process.poll()}):\n{self.told()}")
            time.sleep(0.05)
        with open(url_file) as f:
            self.url = f.read().strip()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=DEADLINE)
        self.log.close()
        if code != 0:
            raise RuntimeError(f"foldline dev ended with {code} after an interrupt:\n{self.told()}")

    def told(self):
        """The end of what the process has printed."""
        with open(self.log.name, "rb") as f:
            return f.read().decode()[-4000:]

    def request(self, messages):
        """Sends (subject, body, headers) one after the other and returns the decoded replies. A request that nobody
        hears yet is sent again until the line is up."""
        return asyncio.run(self._request(messages))

    async def _request(self, messages):
        nc = await nats.connect(self.url)
        try:
            return [json.loads((await self._one(nc, *m)).data) for m in messages]
        finally:
            await nc.close()

    async def _one(self, nc, subject, body, headers):
        until = time.monotonic() + DEADLINE
        while True:
            try:
                return await nc.request(subject, body.encode(), timeout=DEADLINE, headers=headers or None)
            except nats.errors.NoRespondersError:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(0.05)
