#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that the tests start as processes of their own, so that they can be preloaded. Each ends with one line of JSON.

  client.py resp-load PORT CONNS SECONDS SEED   set and get with verification on CONNS connections, in turns and pipelined
  client.py resp-watch PORT CONNS               idle connections, one blocked each in its own thread; tells how each ended
  client.py resp-unread PORT                    sends to a server that does not read (stopped); tells how the connection ended
  client.py resp-multi PORT N                   N transactions of ten INCR
  client.py resp-big PORT MIB                   sets and gets one value
  client.py resp-again PORT SECONDS 0|1         short connections, one after the other, verified
  client.py subscribe PORT CONNS N              CONNS subscribers that each want N messages, in order
  client.py publish PORT N
  client.py mc-load PORT CONNS SECONDS MAX      memcached: set and get values up to MAX bytes with verification
"""
import errno
import hashlib
import json
import random
import select
import socket
import struct
import sys
import threading
import time

from lib import Failure, Memcache, Resp, content, ended


def say(**kw):
    print(json.dumps(kw), flush=True)


def resp_load(port, conns, seconds, seed):
    """Survives nothing: an error ends the connection and is told by name."""
    cs = [Resp(port) for _ in range(conns)]
    say(ready=[c.call("CLIENT", "ID") for c in cs])
    rnd, ops, ends = random.Random(seed), 0, {}
    until = time.monotonic() + seconds
    expect = {}
    while time.monotonic() < until and len(ends) < conns:
        for i, c in enumerate(cs):
            if i in ends:
                continue
            try:
                batch = []
                for k in range(rnd.choice((1, 1, 4, 16))):
                    key, n = f"{seed}:{i}:{k}", rnd.choice((1, 64, 1000, 9000))
                    expect[key] = content(rnd.random(), n)
                    batch.append(key)
                c.s.sendall(b"".join(Resp.encode("SET", key, expect[key]) + Resp.encode("GET", key) for key in batch))
                for key in batch:
                    ok, value = c.read(), c.read()
                    if ok != b"OK" or value != expect[key]:
                        raise Failure(f"connection {i}: {key} came back different")
                    ops += 2
            except (OSError, EOFError) as e:
                ends[i] = ended(e)
    ids = [c.call("CLIENT", "ID") for i, c in enumerate(cs) if i not in ends]
    say(ops=ops, ends=sorted(ends.values()), ids=ids)


def resp_watch(port, conns):
    cs = [Resp(port, timeout=None) for _ in range(conns)]
    for c in cs:
        for _ in range(20):
            c.call("PING")
    ends = [None] * conns

    def wait(i):
        try:
            cs[i].read()
            ends[i] = "a reply"
        except (OSError, EOFError) as e:
            ends[i] = ended(e)

    threads = [threading.Thread(target=wait, args=(i,), daemon=True) for i in range(conns)]
    for th in threads:
        th.start()
    say(ready=True)
    for th in threads:
        th.join(30)
    after = []
    for c in cs:
        try:
            c.s.sendall(b"PING\r\n")
            after.append("sent")
        except OSError as e:
            after.append(ended(e))
    say(ends=ends, after=after)


def resp_unread(port):
    c = Resp(port)
    for _ in range(20):
        c.call("PING")
    say(ready=True)
    sys.stdin.readline()
    c.send("PING")
    say(sent=True)
    try:
        c.read()
        end = "a reply"
    except (OSError, EOFError) as e:
        end = ended(e)
    say(ends=[end])


def resp_multi(port, n):
    c = Resp(port)
    for i in range(n):
        need_ok = c.call("MULTI")
        queued = [c.call("INCR", f"counter:{k}") for k in range(10)]
        got = c.call("EXEC")
        if need_ok != b"OK" or queued != [b"QUEUED"] * 10 or len(got) != 10 or any(b < 1 for b in got):
            raise Failure(f"transaction {i}: {got}")
    c.call("MULTI")
    c.call("SET", "counter:0", "nonsense")
    c.call("DISCARD")
    say(ops=n)


def resp_big(port, mib):
    c = Resp(port, timeout=50)
    value = content("big", mib << 20)
    want = hashlib.sha256(value).hexdigest()
    c.call("SET", "big", value)
    del value
    for _ in range(2):
        got = hashlib.sha256(c.call("GET", "big")).hexdigest()
        if got != want:
            raise Failure("the value came back different")
    if c.call("STRLEN", "big") != mib << 20:
        raise Failure("the server has another length")
    say(ok=True)


def subscribe(port, conns, n):
    cs = [Resp(port) for _ in range(conns)]
    for i, c in enumerate(cs):
        c.call("SUBSCRIBE", f"channel:{i % 2}")
    say(ready=True)
    for i, c in enumerate(cs):
        for k in range(n):
            kind, channel, text = c.read()
            want = content(f"{i % 2}:{k}", 20 + k % 500)
            if kind != b"message" or channel != b"channel:%d" % (i % 2) or text != want:
                raise Failure(f"subscriber {i}: message {k} is not the next one")
    say(messages=conns * n)


def publish(port, n):
    c = Resp(port)
    heard = 0
    for k in range(n):
        for ch in range(2):
            c.send("PUBLISH", f"channel:{ch}", content(f"{ch}:{k}", 20 + k % 500))
        heard += c.read() + c.read()
    say(heard=heard)


def short_talk(c, name, n):
    """What the n-th short connection says: up to three verified rounds, and every eighth leaves a reply unread."""
    for _ in range(n % 4):
        value = b"%d" % n
        c.send("SET", f"{name}:{n % 100}", value)
        c.send("GET", f"{name}:{n % 100}")
        if (c.read(), c.read()) != (b"OK", value):
            raise Failure(f"connection {n}: reply out of step")
    if n % 8 == 7:
        c.send("PING")


def resp_churn(port, rate, seconds):
    warm = Resp(port)
    warm.call("PING")
    say(ready=True)
    sys.stdin.readline()
    start, n = time.monotonic(), 0
    while (t := time.monotonic() - start) < seconds:
        if n > t * rate:
            time.sleep(0.001)
            continue
        c = Resp(port)
        short_talk(c, "churn", n)
        c.close()
        n += 1
    warm.call("PING")
    say(opened=n)
    sys.stdin.readline()


def resp_again(port, seconds, reset):
    """Short connections from few ports, as fast as they go; most end with a FIN, or all with a RST, so that the port is free at once."""
    start, n, slowest = time.monotonic(), 0, 0
    while (t := time.monotonic() - start) < seconds:
        try:
            c = Resp(port)
        except OSError as e:
            if e.errno != errno.EADDRNOTAVAIL:  # all ports rest
                raise
            time.sleep(0.001)
            continue
        short_talk(c, "again", n)
        if reset:
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        n += 1
        slowest = max(slowest, time.monotonic() - start - t)
    say(opened=n, slowest=slowest)


def resp_crowd(port, conns):
    cs = []
    for _ in range(conns):
        c = Resp.__new__(Resp)
        c.s, c.buf = socket.socket(), bytearray()
        c.s.setblocking(False)
        c.s.connect_ex(("127.0.0.1", port))
        cs.append(c)
    for c in cs:
        select.select([], [c.s], [], 20)
        c.s.setblocking(True)
        c.s.settimeout(30)
    for k in range(60):
        for i, c in enumerate(cs):
            c.send("SET", f"crowd:{i}", content(f"{i}:{k}", 1 + 37 * k))
        for i, c in enumerate(cs):
            if c.read() != b"OK":
                raise Failure(f"connection {i}: reply out of step")
            c.send("GET", f"crowd:{i}")
        for i, c in enumerate(cs):
            if c.read() != content(f"{i}:{k}", 1 + 37 * k):
                raise Failure(f"connection {i}: value {k} came back different")
    say(done=True)
    sys.stdin.readline()


def mc_load(port, conns, seconds, biggest):
    sizes = [n for n in (1, 100, 4000, 60000, 1 << 20) if n <= biggest]
    totals, errors = [0] * conns, []

    def run(i):
        rnd = random.Random(i)
        try:
            c = Memcache(port)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                key = b"k%d:%d" % (i, rnd.randrange(8))
                value = content(rnd.random(), rnd.choice(sizes))
                c.set(key, value)
                for _ in range(2):
                    got = c.get(key)
                    if got != value:
                        raise Failure(f"connection {i}: {key.decode()} came back different ({len(value)} bytes)")
                totals[i] += 3
            c.close()
        except (Failure, OSError, EOFError) as e:
            errors.append(f"{ended(e)} {e}" if not isinstance(e, Failure) else str(e))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(conns)]
    for th in threads:
        th.start()
    say(ready=True)
    for th in threads:
        th.join()
    say(ops=sum(totals), idle=sum(not n for n in totals), errors=errors[:5])


COMMANDS = {"resp-load": resp_load, "resp-watch": resp_watch, "resp-unread": resp_unread, "resp-multi": resp_multi, "resp-big": resp_big,
            "subscribe": subscribe, "publish": publish, "resp-churn": resp_churn, "resp-again": resp_again, "resp-crowd": resp_crowd, "mc-load": mc_load}

if __name__ == "__main__":
    try:
        COMMANDS[sys.argv[1]](*[int(float(a)) for a in sys.argv[2:]])
    except (Failure, OSError, EOFError) as e:
        say(error=f"{type(e).__name__}: {e}")
        sys.exit(1)
