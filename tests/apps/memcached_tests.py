# SPDX-License-Identifier: Apache-2.0
"""Memcached, unmodified (libevent, worker threads): memcaslap, and Python as a further client."""
import re
import signal
import time

from lib import Memcache, content, need, program

TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def caslap(t, server, clients, seconds, *more, preload=True):
    return t.start([program("memcaslap"), "-s", f"127.0.0.1:{server.port}", "-T", "2", "-c", str(clients), "-t", f"{seconds}s", "-w", "1k", *more],
                   preload)


def verified(p, seconds):
    out = p.succeed(seconds)
    figures = dict(re.findall(r"(\w+): (\d+)", out))
    for bad in ("verify_failed", "verify_misses"):
        need(figures.get(bad, "0") == "0", f"memcaslap: {bad} {figures.get(bad)}")
    need(int(figures.get("cmd_get", 0)) > 100 and int(figures.get("cmd_set", 0)) > 10, f"memcaslap did little: {p.tail()}")


def loaded(t, server, conns, seconds, biggest, preload=True):
    c = t.client("mc-load", server.port, conns, seconds, biggest, preload=preload)
    c.said("ready")
    return c


def unhurt(c, seconds=40):
    ops = c.said("ops", seconds)
    need(c.said("errors") == [], f"{c.said('errors')}")
    need(c.said("idle") == 0, f"{c.said('idle')} connections did nothing")
    need(ops > 50, f"only {ops} operations")
    c.succeed(10)


@test
def memcached_both(t):
    """4 server threads, memcaslap with 64 clients that verifies every value, and a further client."""
    s = t.memcached("-t", "4", "-m", "1024")
    load, c = loaded(t, s, 8, 4, 60000), caslap(t, s, 64, 4, "-v", "1")
    verified(c, 30)
    unhurt(load)
    t.accelerated(64 + 8, 0.9)


@test
def memcached_big_values(t):
    """Values of up to 1 MiB from 8 connections, 4 server threads."""
    s = t.memcached("-t", "4", "-I", "2m", "-m", "256")
    unhurt(loaded(t, s, 8, 4, 1 << 20))
    t.accelerated(8, 0.9)


@test
def memcached_many_clients(t):
    """256 clients of memcaslap at once."""
    s = t.memcached("-t", "4", "-m", "1024")
    verified(caslap(t, s, 256, 4, "-v", "0.5"), 40)
    need(Memcache(s.port).version().startswith(b"VERSION"), "version")
    t.accelerated(100)


@test
def memcached_server_only(t):
    """Only the server is preloaded."""
    s = t.memcached("-t", "4")
    load = loaded(t, s, 4, 2, 60000, preload=False)
    verified(caslap(t, s, 16, 2, "-v", "1", preload=False), 20)
    unhurt(load)
    t.not_accelerated()


@test
def memcached_client_only(t):
    """Only the clients are preloaded."""
    s = t.memcached("-t", "4", preload=False)
    load = loaded(t, s, 4, 2, 60000)
    verified(caslap(t, s, 16, 2, "-v", "1"), 20)
    unhurt(load)
    t.not_accelerated()


@test
def memcached_client_killed(t):
    """kill -9 of clients under load: their connections go, the others serve on, no value is harmed."""
    s = t.memcached("-t", "4")
    m = Memcache(s.port)
    m.set(b"kept", content("kept", 5000))
    load = loaded(t, s, 4, 4, 60000)
    before = int(m.stats()["curr_connections"])
    victim = caslap(t, s, 32, 30)
    t.until_true("the clients are there", lambda: int(m.stats()["curr_connections"]) >= before + 32, 10)
    time.sleep(0.3)
    victim.signal(signal.SIGKILL)
    victim.wait(5)
    t.until_true("the server dropped them", lambda: int(m.stats()["curr_connections"]) <= before, 10)
    unhurt(load)
    need(m.get(b"kept") == content("kept", 5000), "a value changed")
    t.accelerated(4)


@test
def memcached_server_killed(t):
    """kill -9 of the server under load: the clients see an end that TCP shows, soon."""
    s = t.memcached("-t", "4")
    load = loaded(t, s, 4, 20, 4000)
    time.sleep(0.5)
    t.accelerated(4)
    s.signal(signal.SIGKILL)
    s.wait(5)
    errors = load.said("errors", 10)
    need(len(errors) == 4 and all(e.split()[0] in ("EOF", "ECONNRESET", "EPIPE") for e in errors), f"clients saw {errors}")


@test
def memcached_server_stopped(t):
    """SIGSTOP of the server for 2 s under load, then SIGCONT: everything goes on."""
    s = t.memcached("-t", "4")
    load = loaded(t, s, 8, 4, 60000)
    time.sleep(0.5)
    s.signal(signal.SIGSTOP)
    time.sleep(2)
    s.signal(signal.SIGCONT)
    unhurt(load)
    t.accelerated(8)
