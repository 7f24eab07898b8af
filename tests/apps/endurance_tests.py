# SPDX-License-Identifier: Apache-2.0
"""Many connections, many deaths, forks at awkward moments: the server stays healthy and holds no more than before."""
import signal
import subprocess
import time

from lib import Memcache, Resp, content, few_ports, need, program, rendezvous_names

TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def at_once(t):
    """Upgrades begin with the connection, and nobody waits for them."""
    if t.env.get("CULVERT_UPGRADE_AFTER", "0") is not None:
        t.env = {**t.env, "CULVERT_UPGRADE_WAIT": None}


def lean(t, p, before, what, fds=4, rss=6144, segments=1):
    """Within a few seconds the process holds what it held before, but for a little."""
    def slim():
        now = p.weight()
        return now["fds"] <= before["fds"] + fds and now["rss"] <= before["rss"] + rss and now["segments"] <= before["segments"] + segments

    try:
        t.until_true(what, slim, 8)
    except Exception:
        need(False, f"{what}: {p.name} held {before} before, and now {p.weight()}")


@test
def churn(t):
    """1,000 connections a second for 20 s, upgraded at once, some closed in the middle of it, some with a reply unread: all memory comes back."""
    at_once(t)
    s = t.redis()
    c = t.client("resp-churn", s.port, 1000, 20, stdin=subprocess.PIPE)
    c.said("ready")
    probe = t.client("resp-churn", s.port, 1000, 1, stdin=subprocess.PIPE)  # the first second may take what the rest uses again
    probe.said("ready")
    probe.p.stdin.write(b"\n")
    probe.p.stdin.flush()
    probe.said("opened")
    time.sleep(0.5)
    before = {p: p.weight() for p in (s, probe)}
    c.p.stdin.write(b"\n")
    c.p.stdin.flush()
    n = c.said("opened", 40)
    need(n > 6000, f"only {n} connections in 20 s")
    time.sleep(0.5)
    lean(t, s, before[s], "the server, after it", segments=3)
    lean(t, c, before[probe], "the client, after it", segments=3)
    t.until_true("no rendezvous is left", lambda: not rendezvous_names(s.port), 5)
    probe.p.stdin.close()
    c.p.stdin.close()
    c.wait(10)
    t.unharmed(*t.counters()[:2]) if not t.plain else None


@test
def ports_used_again(t):
    """New connections get the addresses of old ones that the server has not read to their end: none is taken for another."""
    at_once(t)
    for ports, reset in (12, 1), (400, 0):
        with few_ports(ports):
            s = t.redis()
            c = t.client("resp-again", s.port, 4, reset)
            n, slowest = c.said("opened", 30), c.said("slowest")
            need(n > 500, f"only {n} connections in 4 s")
            need(slowest < 1.8, f"one took {slowest:.1f} s")  # a SYN that meets the old socket is sent again after 1 s
            c.succeed(10)
    t.unharmed(*t.counters()[:2]) if not t.plain else None


@test
def crowd(t):
    """200 connections opened at the same moment by one process: all come onto the link."""
    at_once(t)
    s = t.redis()
    c = t.client("resp-crowd", s.port, 200, stdin=subprocess.PIPE)
    c.said("done", 50)
    t.until_true("no rendezvous is left", lambda: not rendezvous_names(s.port), 5)
    c.p.stdin.close()
    c.succeed(10)
    t.accelerated(400)


def kill_fifty(t, s, victim, connections):
    """Fifty clients die under load, at moments that spread over the handshake."""
    before = None
    for i in range(50):
        v = victim(i)
        time.sleep(0.02 + 0.006 * i)
        v.signal(signal.SIGKILL)
        v.wait(5)
        if i == 9:
            t.until_true("the server dropped them", lambda: connections() <= 5, 10)
            time.sleep(0.3)
            before = s.weight()
    t.until_true("the server dropped them", lambda: connections() <= 5, 10)
    lean(t, s, before, "after 50 deaths", segments=2, rss=16384)
    t.until_true("no rendezvous is left", lambda: not rendezvous_names(s.port), 5)


@test
def redis_client_killed_often(t):
    """50 clients are killed -9 under load, one after the other: the server keeps its other clients, descriptors, memory and segments."""
    at_once(t)
    s = t.redis()
    admin = Resp(s.port)
    load = t.client("resp-load", s.port, 2, 18, 21)
    load.said("ready")
    exe = program("redis-benchmark")
    kill_fifty(t, s, lambda i: t.start([exe, "-p", str(s.port), "-c", "8", "-n", "10000000", "-q", "-t", "get,set", "-d", "300"]),
               lambda: int(admin.info("clients")["connected_clients"]))
    need(load.said("ends", 30) == [], f"the surviving client's connections ended: {load.said('ends')}")


@test
def memcached_client_killed_often(t):
    """The same with memcached, 4 threads, and memcaslap."""
    at_once(t)
    s = t.memcached("-t", "4")
    m = Memcache(s.port)
    m.set(b"kept", content("kept", 5000))
    exe = program("memcaslap")
    kill_fifty(t, s, lambda i: t.start([exe, "-s", f"127.0.0.1:{s.port}", "-T", "2", "-c", "8", "-t", "30s", "-w", "100"]),
               lambda: int(m.stats()["curr_connections"]))
    need(m.get(b"kept") == content("kept", 5000), "a value changed")


@test
def redis_bgsave_in_handshake(t):
    """The server forks for BGSAVE again and again while clients come, are switched, and work; nothing is lost and all of them stay."""
    at_once(t)
    s = t.redis()
    admin = Resp(s.port)
    loads = []
    for i in range(12):
        admin.call("SET", "x", i)
        loads.append(t.client("resp-load", s.port, 4, 2.5, 30 + i))
        for _ in range(4):
            time.sleep(0.03)
            if admin.info("persistence")["rdb_bgsave_in_progress"] == "0":
                admin.call("BGSAVE")
    for load in loads:
        need(load.said("ends", 30) == [], f"connections ended: {load.said('ends')}")
        need(load.said("ids") == load.said("ready"), "connections are not those from before")
        load.succeed(10)
    need(admin.info("persistence")["rdb_last_bgsave_status"] == "ok", "BGSAVE failed")
    t.accelerated(60)
