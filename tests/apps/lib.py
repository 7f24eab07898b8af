# SPDX-License-Identifier: Apache-2.0
"""What the application tests share: servers and clients started by us and ended by pid, small protocol clients, and the proof from the stats.

A test is a function `test(t)` that raises Failure (or returns) and takes everything it starts from `t`, so that nothing outlives it.
"""
import atexit
import contextlib
import ctypes
import fcntl
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PYTHON = sys.executable
TEST_SECONDS = 60
helpers = {}  # built here: name -> path


class Failure(Exception):
    """The application did not do what it does over kernel TCP."""


class Missing(Exception):
    """Something that the test needs is not installed or not built."""


def need(cond, text):
    if not cond:
        raise Failure(text)


@contextlib.contextmanager
def few_ports(n):
    """Within it, everything runs in a network of its own with a loopback and n ports for clients."""
    libc, newnet = ctypes.CDLL(None, use_errno=True), 0x40000000
    home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.unshare(newnet) != 0:
            raise Missing(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")
        with socket.socket() as s:  # SIOCSIFFLAGS, IFF_UP
            fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))
        with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
            f.write(f"40000 {40000 + n - 1}")
        yield
    finally:
        libc.setns(home, newnet)
        os.close(home)


def find_build(args):
    tree = args.build or os.environ.get("CV_BUILDDIR") or os.path.join(TOP, "build")
    lib = args.lib or os.environ.get("CV_LIB") or next(
        (p for p in (os.path.join(tree, d, "libculvert.so") for d in ("lib", ".libs")) if os.path.exists(p)), None)
    cli = args.cli or os.environ.get("CV_BIN") or next(
        (p for p in (os.path.join(tree, d) for d in ("bin/culvert", "culvert")) if os.path.exists(p)), None)
    for what, path in (("libculvert.so", lib), ("the culvert program", cli)):
        if not path or not os.path.exists(path):
            raise Missing(f"{what} was not found under {tree}: build it first (./quickstart build); --plain tests the tests")
    san = os.environ.get("CV_SAN_LIB") or sanitizer_of(lib)
    return (f"{san} {os.path.abspath(lib)}" if san else os.path.abspath(lib)), os.path.abspath(cli)


def sanitizer_of(lib):
    out = subprocess.run(["ldd", lib], capture_output=True, text=True).stdout
    return " ".join(re.findall(r"=> (\S*lib(?:asan|tsan|ubsan)\.so\S*)", out))


def program(name):
    path = shutil.which(name)
    if not path:
        raise Missing(f"{name} is not installed")
    return path


def helper(name):
    """A program of ours from the build tree, built if need be."""
    tree = os.environ.get("CV_BUILDDIR") or os.path.join(TOP, "build")
    path = os.path.join(tree, "tests", "apps", name)
    if not os.path.exists(path):
        out = tempfile.mkdtemp(prefix="culvert-apps-")
        atexit.register(shutil.rmtree, out, True)
        path = helpers.setdefault(name, os.path.join(out, name))
    if not os.path.exists(path):
        r = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-pthread", "-o", path, os.path.join(HERE, name + ".c")], capture_output=True,
                           text=True)
        if r.returncode:
            raise Missing(f"{name} is not built, and cannot be: {r.stderr.strip()[-200:]}")
    return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """One program in a process group of its own, its output in a file."""

    def __init__(self, t, argv, preload, name=None, stdin=None, env=None):
        self.name = name or os.path.basename(argv[0])
        self.log = os.path.join(t.dir, f"{len(t.processes)}.{self.name}.log")
        full = {k: v for k, v in os.environ.items() if not k.startswith("CULVERT_") and k != "LD_PRELOAD"}
        if preload:
            full.update(t.culvert_env())
        full.update(env or {})
        with open(self.log, "wb") as out:
            self.p = subprocess.Popen(argv, stdin=stdin or subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=full, cwd=t.dir,
                                      start_new_session=True)
        self.pid = self.p.pid
        t.processes.append(self)

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def wait(self, seconds, what=None):
        try:
            return self.p.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{what or self.name} did not end within {seconds} s: {self.tail()}") from None

    def succeed(self, seconds):
        status = self.wait(seconds)
        need(status == 0, f"{self.name} ended with {status}: {self.tail()}")
        return self.text()

    def said(self, key, seconds=20):
        """The value that one of its JSON lines has under this key, as soon as it stands there."""
        end = time.monotonic() + seconds
        while True:
            ended, text = not self.alive(), self.text()
            for line in text.split("\n")[:-1]:
                if line.startswith("{"):
                    j = json.loads(line)
                    need("error" not in j, f"{self.name}: {j.get('error')}")
                    if key in j:
                        return j[key]
            need(not ended, f"{self.name} ended without saying '{key}': {self.tail()}")
            need(time.monotonic() < end, f"{self.name} did not say '{key}' within {seconds} s: {self.tail()}")
            time.sleep(0.02)

    def weight(self):
        """What it holds: descriptors, KiB of memory of its own, mapped segments."""
        with open(f"/proc/{self.pid}/status") as f:
            rss = int(re.search(r"RssAnon:\s+(\d+)", f.read()).group(1))
        with open(f"/proc/{self.pid}/maps") as f:
            segments = sum("memfd:culvert" in line for line in f)
        return {"fds": len(os.listdir(f"/proc/{self.pid}/fd")), "rss": rss, "segments": segments}

    def tail(self):
        return " | ".join(self.text().strip().replace("\r", "\n").split("\n")[-4:])[-500:]

    def signal(self, sig):
        if self.p.poll() is None:
            os.kill(self.pid, sig)

    def alive(self):
        return self.p.poll() is None

    def end(self):
        """Ask, then insist; leaves no child of it behind."""
        for sig, seconds in ((signal.SIGCONT, 0), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            try:
                os.killpg(self.pid, sig)
            except ProcessLookupError:
                break
            try:
                if seconds:
                    self.p.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
        self.p.wait()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Context:
    """A test's surroundings. plain: nothing is preloaded, acceleration is not asked for."""

    def __init__(self, plain, preload=None, cli=None, env=None):
        self.plain, self.preload, self.cli, self.env = plain, preload, cli, env or {}
        self.dir = tempfile.mkdtemp(prefix="culvert-apps-")
        self.stats = os.path.join(self.dir, "stats")
        os.mkdir(self.stats)
        self.processes = []
        self.until = time.monotonic() + TEST_SECONDS

    def culvert_env(self):
        if self.plain:
            return {}
        env = {"LD_PRELOAD": self.preload, "CULVERT_STATS_DIR": self.stats, "CULVERT_STATS_KEEP": "yes", "CULVERT_UPGRADE_AFTER": "0",
               **self.env}
        return {k: v for k, v in env.items() if v is not None}

    def start(self, argv, preload=True, **kw):
        return Process(self, argv, preload, **kw)

    def client(self, *argv, preload=True, **kw):
        """tests/apps/client.py in a process of its own, so that it can be preloaded."""
        return self.start([PYTHON, "-B", os.path.join(HERE, "client.py"), *map(str, argv)], preload, name=f"client-{argv[0]}", **kw)

    def until_true(self, what, fn, seconds=20):
        end = min(self.until, time.monotonic() + seconds)
        while True:
            value = fn()
            if value:
                return value
            if time.monotonic() > end:
                raise Failure(f"{what}: not within {seconds} s")
            time.sleep(0.02)

    def close(self, keep=False):
        for p in reversed(self.processes):
            p.end()
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)

    # -- servers

    def redis(self, *options, preload=True):
        port = free_port()
        home = tempfile.mkdtemp(dir=self.dir)
        p = self.start([program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", home, "--save", "", "--appendonly", "no",
                        "--daemonize", "no", "--enable-debug-command", "yes", *options], preload)
        p.port = port
        self.ready(p, lambda: Resp(port).call("PING") == b"PONG")
        return p

    def memcached(self, *options, preload=True):
        port = free_port()
        user = ["-u", "root"] if os.getuid() == 0 else []
        p = self.start([program("memcached"), "-l", "127.0.0.1", "-p", str(port), "-U", "0", *user, *options], preload)
        p.port = port
        self.ready(p, lambda: Memcache(port).version())
        return p

    def ready(self, p, probe):
        def tried():
            need(p.alive(), f"{p.name} ended at start: {p.tail()}")
            try:
                return probe()
            except OSError:
                return False
        self.until_true(f"{p.name} answers", tried, 15)

    # -- stats

    def counters(self):
        """(totals, reasons, per process) of all preloaded programs of this test, those that ended too."""
        out = subprocess.run([self.cli, "stat", "--dir", self.stats, "--json", "--keep-dead"], capture_output=True, text=True, timeout=20)
        try:
            j = json.loads(out.stdout)
            return j["sum"]["totals"], {k: v for k, v in j["sum"]["reasons"].items() if v}, j["processes"]
        except (ValueError, KeyError) as e:
            raise Failure(f"culvert stat --json: {e}: {out.stderr.strip()[:200]}") from None

    def accelerated(self, streams=1, share=0.0, by=None):
        """At least so many ends of streams went over a link (in process `by`, else in all), with this share of all bytes."""
        if self.plain:
            return
        c, reasons, processes = self.counters()
        if by:
            c = {k: sum(p["totals"][k] for p in processes if p["pid"] == by.pid) for k in c}
        link, tcp = c["tx_link_bytes"] + c["rx_link_bytes"], c["tx_tcp_bytes"] + c["rx_tcp_bytes"]
        said = ", ".join(f"{k} {v}" for k, v in reasons.items()) or "none"
        need(c["streams_upgraded"] >= streams and link > 0,
             f"not accelerated: {c['streams_upgraded']} of {c['streams_opened']} streams (wanted {streams}), {link} bytes by link; reasons: {said}")
        need(link >= share * (link + tcp), f"only {link} of {link + tcp} bytes went by link (wanted {share:.0%}); reasons: {said}")
        self.unharmed(c, reasons)

    def not_accelerated(self):
        if self.plain:
            return
        c, reasons, _ = self.counters()
        need(c["streams_upgraded"] == 0, f"{c['streams_upgraded']} streams upgraded with a peer that lacks culvert")
        self.unharmed(c, reasons)

    @staticmethod
    def unharmed(c, reasons):
        need(not c["resets"], f"{c['resets']} connections were reset by a hand-over that did not finish")
        need("protocol" not in reasons, f"{reasons.get('protocol')} times the protocol was broken")


def rendezvous_names(port):
    """Abstract sockets on which some client waits for the process that serves this port."""
    with open("/proc/net/unix") as f:
        rows = [line.split() for line in f]
    # listening ones: the channel of a link bears the name of the socket that accepted it
    return [r[-1] for r in rows if r[3] == "00010000" and r[-1].startswith("@culvert/") and r[-1].endswith(f"{port:04x}")]


# -- protocol clients

class Resp:
    """A Redis client; errors of the server raise Failure, an end of the connection is EOFError."""

    def __init__(self, port, timeout=30):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = bytearray()

    @staticmethod
    def encode(*args):
        parts = [b"*%d\r\n" % len(args)]
        for a in args:
            a = a if isinstance(a, bytes) else str(a).encode()
            parts += [b"$%d\r\n" % len(a), a, b"\r\n"]
        return b"".join(parts)

    def more(self, size=1 << 16):
        data = self.s.recv(size)
        if not data:
            raise EOFError("end of connection")
        self.buf += data

    def line(self):
        while (i := self.buf.find(b"\r\n")) < 0:
            self.more()
        line = bytes(self.buf[:i])
        del self.buf[:i + 2]
        return line

    def read(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise Failure("redis: " + rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            n = int(rest)
            if n < 0:
                return None
            while len(self.buf) < n + 2:
                self.more(1 << 20)
            value = bytes(self.buf[:n])
            need(self.buf[n:n + 2] == b"\r\n", "redis: reply out of step")
            del self.buf[:n + 2]
            return value
        if kind == b"*":
            n = int(rest)
            return None if n < 0 else [self.read() for _ in range(n)]
        raise Failure(f"redis: reply out of step: {line[:60]!r}")

    def send(self, *args):
        self.s.sendall(self.encode(*args))

    def call(self, *args):
        self.send(*args)
        return self.read()

    def info(self, section):
        text = self.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def close(self):
        self.s.close()


class Memcache:
    """A memcached client, text protocol."""

    def __init__(self, port, timeout=30):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.f = self.s.makefile("rb", 1 << 16)

    def line(self):
        line = self.f.readline()
        if not line:
            raise EOFError("end of connection")
        return line.rstrip(b"\r\n")

    def version(self):
        self.s.sendall(b"version\r\n")
        return self.line()

    def set(self, key, value):
        self.s.sendall(b"set %s 0 0 %d\r\n" % (key, len(value)) + value + b"\r\n")
        got = self.line()
        need(got == b"STORED", f"memcached: set says {got[:60]!r}")

    def get(self, key):
        self.s.sendall(b"get %s\r\n" % key)
        head = self.line()
        if head == b"END":
            return None
        word = head.split()
        need(len(word) == 4 and word[:2] == [b"VALUE", key], f"memcached: reply out of step: {head[:60]!r}")
        value = self.f.read(int(word[3]))
        need(self.line() == b"" and self.line() == b"END", "memcached: reply out of step")
        return value

    def stats(self):
        self.s.sendall(b"stats\r\n")
        out = {}
        while (line := self.line()) != b"END":
            _, key, value = line.split(b" ", 2)
            out[key.decode()] = value.decode()
        return out

    def close(self):
        self.f.close()
        self.s.close()


def content(seed, n):
    """n bytes that only this seed gives."""
    return random.Random(str(seed)).randbytes(n)


def ended(e):
    """How a connection ended, as a word."""
    if isinstance(e, EOFError):
        return "EOF"
    if isinstance(e, TimeoutError):
        return "TIMEOUT"
    return {ConnectionResetError: "ECONNRESET", BrokenPipeError: "EPIPE"}.get(type(e), f"{type(e).__name__}")
