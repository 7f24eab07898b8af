# SPDX-License-Identifier: Apache-2.0
"""Redis, unmodified: redis-server, redis-benchmark, redis-cli, and Python as a further client."""
import signal
import subprocess
import time

from lib import Resp, content, need, program

TESTS = []
TCP_ENDS = {"EOF", "ECONNRESET", "EPIPE"}  # what a connection may show whose other process was killed


def test(fn):
    TESTS.append(fn)
    return fn


def bench(t, server, clients=16, requests=50000, *more, preload=True):
    return t.start([program("redis-benchmark"), "-p", str(server.port), "-c", str(clients), "-n", str(requests), "-q", *more], preload)


def loaded(t, server, conns=8, seconds=3.0, seed=1, preload=True):
    c = t.client("resp-load", server.port, conns, seconds, seed, preload=preload)
    c.first = c.said("ready")
    return c


def unhurt(c, seconds=30):
    """The load client ends well: every reply was right, and its connections are those it began with."""
    ops = c.said("ops", seconds)
    need(c.said("ends") == [], f"connections ended: {c.said('ends')}")
    need(c.said("ids") == c.first, "connections are not those from before")
    c.succeed(10)
    need(ops > 100, f"only {ops} operations")


@test
def redis_both(t):
    """redis-benchmark with 1 and 16 clients, both sides preloaded: every long-lived stream goes over a link."""
    s = t.redis()
    bench(t, s, 1, 20000, "-t", "get,set").succeed(30)
    b = bench(t, s, 16, 30000, "-t", "get,set,lpush,lrange_100", "-d", "200")
    b.succeed(40)
    unhurt(loaded(t, s))
    t.accelerated(16 + 8, 0.9)


@test
def redis_server_only(t):
    """Only the server is preloaded: everything works, over TCP."""
    s = t.redis()
    bench(t, s, 16, 40000, "-t", "get,set", preload=False).succeed(30)
    unhurt(loaded(t, s, preload=False, seconds=2))
    t.not_accelerated()


@test
def redis_client_only(t):
    """Only the clients are preloaded: everything works, over TCP."""
    s = t.redis(preload=False)
    bench(t, s, 16, 40000, "-t", "get,set").succeed(30)
    unhurt(loaded(t, s, seconds=2))
    t.not_accelerated()


@test
def redis_cli(t):
    """redis-cli: arguments, a script from stdin by --pipe, and -x."""
    s = t.redis()

    def cli(*args, stdin=None):
        f = None
        if stdin is not None:
            path = f"{t.dir}/stdin{len(t.processes)}"
            with open(path, "wb") as w:
                w.write(stdin)
            f = open(path, "rb")
        out = t.start([program("redis-cli"), "-p", str(s.port), *args], stdin=f).succeed(20)
        if f:
            f.close()
        return out

    need(cli("SET", "a", "1").strip() == "OK", "SET")
    out = cli("--pipe", stdin=b"".join(Resp.encode("SET", f"pipe:{i}", content(i, 50)) for i in range(20000)))
    need("errors: 0, replies: 20000" in out, f"--pipe: {out.strip()[-80:]}")
    value = b"x" * 3000000
    need(cli("-x", "SET", "big", stdin=value).strip() == "OK", "-x SET")
    need(cli("STRLEN", "big").strip() == "3000000", "STRLEN")
    need(len(cli("GET", "big").strip()) == 3000000, "GET")
    need(cli("DBSIZE").strip() == "20002", "DBSIZE")


@test
def redis_bgsave(t):
    """BGSAVE twice under load; the connections from before serve on, and the file is whole."""
    s = t.redis()
    bench(t, s, 8, 100000, "-t", "set", "-d", "1000", "-r", "100000").succeed(40)
    admin, load = Resp(s.port), loaded(t, s, 8, 6)
    b = bench(t, s, 16, 10000000, "-t", "get,set", "-d", "500", "-r", "100000")
    for _ in range(2):
        admin.call("BGSAVE")
        t.until_true("BGSAVE ends", lambda: admin.info("persistence")["rdb_bgsave_in_progress"] == "0", 30)
        need(admin.info("persistence")["rdb_last_bgsave_status"] == "ok", "BGSAVE failed")
    need(b.alive(), f"redis-benchmark ended: {b.tail()}")
    b.end()
    unhurt(load)
    out = subprocess.run([program("redis-check-rdb"), admin.call("CONFIG", "GET", "dir")[1].decode() + "/dump.rdb"], capture_output=True,
                         text=True)
    need(out.returncode == 0, f"redis-check-rdb: {out.stdout[-200:]}")
    need(admin.call("PING") == b"PONG", "PING")
    t.accelerated(8 + 16)


@test
def redis_replication(t):
    """A replica that starts from a full sync follows under load, both servers preloaded; then it is promoted and turned round."""
    m, r = t.redis(), t.redis()
    bench(t, m, 8, 60000, "-t", "set", "-d", "500", "-r", "50000").succeed(30)
    cm, cr = Resp(m.port), Resp(r.port)
    cr.call("REPLICAOF", "127.0.0.1", m.port)
    t.until_true("the replica is in sync", lambda: cr.info("replication")["master_link_status"] == "up", 30)
    bench(t, m, 16, 50000, "-t", "set,lpush", "-d", "200", "-r", "50000").succeed(40)

    def caught_up(a, b):
        offset = a.info("replication")["master_repl_offset"]
        return b.info("replication")["slave_repl_offset"] == offset and a.call("DEBUG", "DIGEST") == b.call("DEBUG", "DIGEST")

    t.until_true("both servers have the same data", lambda: caught_up(cm, cr), 20)
    t.accelerated(1, by=r)
    t.accelerated(1, by=m)
    need(cm.info("replication")["connected_slaves"] == "1", "the master lost its replica")
    cr.call("REPLICAOF", "NO", "ONE")
    cm.call("REPLICAOF", "127.0.0.1", r.port)
    t.until_true("the old master is in sync", lambda: cm.info("replication").get("master_link_status") == "up", 30)
    bench(t, r, 4, 20000, "-t", "set", "-r", "50000").succeed(30)
    t.until_true("both servers have the same data", lambda: caught_up(cr, cm), 20)


@test
def redis_pubsub(t):
    """8 subscribers in one process, each gets 4000 messages in order while others load the server."""
    s = t.redis()
    subs = t.client("subscribe", s.port, 8, 4000)
    subs.said("ready")
    load = loaded(t, s, 4, 2, 3)
    pub = t.client("publish", s.port, 4000)
    need(pub.said("heard", 40) == 8 * 4000, "messages were heard by fewer than all")
    need(subs.said("messages", 40) == 8 * 4000, "messages missing")
    pub.succeed(5)
    subs.succeed(5)
    unhurt(load)
    t.accelerated(8)


@test
def redis_multi(t):
    """Four processes run transactions on the same counters: none is lost, none is torn."""
    s = t.redis()
    clients = [t.client("resp-multi", s.port, 400) for _ in range(4)]
    for c in clients:
        need(c.said("ops", 40) == 400, "transactions")
        c.succeed(5)
    r = Resp(s.port)
    got = [int(r.call("GET", f"counter:{k}")) for k in range(10)]
    need(got == [1600] * 10, f"counters {got}")
    t.accelerated(4)


@test
def redis_big_value(t):
    """A value of 64 MiB, there and twice back."""
    s = t.redis()
    c = t.client("resp-big", s.port, 64)
    c.said("ok", 55)
    c.succeed(5)
    t.accelerated(1, 0.9)


@test
def redis_io_threads(t):
    """io-threads 4, reads by threads too: replies right, benchmark with pipelining ends. (Slow: the threads spin for CPUs.)"""
    s = t.redis("--io-threads", "4", "--io-threads-do-reads", "yes")
    load = loaded(t, s, 16, 4, 5)
    b = bench(t, s, 32, 16000, "-t", "get,set", "-P", "4")
    b.succeed(50)
    unhurt(load)
    t.accelerated(32 + 16)


@test
def redis_many_clients(t):
    """300 clients at once."""
    s = t.redis()
    bench(t, s, 300, 60000, "-t", "get").succeed(50)
    need(Resp(s.port).call("PING") == b"PONG", "PING")
    t.accelerated(100)


def kill_server(t):
    s = t.redis()
    watch = t.client("resp-watch", s.port, 4)
    load = loaded(t, s, 4, 30, 7)
    b = bench(t, s, 16, 10000000, "-t", "set")
    watch.said("ready")
    time.sleep(0.7)
    t.accelerated(8)
    need(b.alive(), f"redis-benchmark: {b.tail()}")
    s.signal(signal.SIGKILL)
    s.wait(5)
    ends, load_ends = watch.said("ends", 10), load.said("ends", 10)
    need(len(load_ends) == 4 and set(load_ends) <= TCP_ENDS, f"under load: {load_ends}")
    status = b.wait(10, "redis-benchmark, its server killed,")
    need(status != 0, "redis-benchmark says that all is well")
    return {"idle": ends, "sent afterwards": watch.said("after"), "benchmark": status}


@test
def redis_server_killed(t):
    """kill -9 of the server under load: idle and busy clients see what TCP shows."""
    compare(t, kill_server)


def kill_stopped_server(t):
    s = t.redis()
    c = t.client("resp-unread", s.port, stdin=subprocess.PIPE)
    c.said("ready")
    s.signal(signal.SIGSTOP)
    c.p.stdin.write(b"\n")
    c.p.stdin.close()
    c.said("sent")
    time.sleep(0.1)
    s.signal(signal.SIGKILL)
    return {"ends": c.said("ends", 10)}


@test
def redis_server_killed_unread(t):
    """kill -9 of a server that has bytes unread: the client sees a reset, as over TCP."""
    compare(t, kill_stopped_server)


def compare(t, scenario):
    """The scenario over kernel TCP, and (unless all is plain) again as asked for: the same outcome."""
    asked, t.plain = t.plain, True
    want = scenario(t)
    t.plain = asked
    got = scenario(t)
    need(got == want, f"kernel TCP: {want}; now: {got}")


@test
def redis_client_killed(t):
    """kill -9 of clients under load: the server drops them, and serves the others on."""
    s = t.redis()
    admin, load = Resp(s.port), loaded(t, s, 4, 4, 9)
    before = int(admin.info("clients")["connected_clients"])
    for preload in (True, False):
        victims = [bench(t, s, 32, 10000000, "-t", "get,set", "-d", "1000", preload=preload), loaded(t, s, 4, 30, 10, preload)]
        t.until_true("the clients are there", lambda: int(admin.info("clients")["connected_clients"]) >= before + 36, 10)
        time.sleep(0.3)
        for v in victims:
            v.signal(signal.SIGKILL)
            v.wait(5)
        t.until_true("the server dropped them", lambda: int(admin.info("clients")["connected_clients"]) <= before, 10)
    unhurt(load)
    t.accelerated(4)


@test
def redis_server_stopped(t):
    """SIGSTOP of the server for 2 s under load, then SIGCONT: everything goes on."""
    s = t.redis()
    load, b = loaded(t, s, 8, 4, 11), bench(t, s, 16, 60000, "-t", "set", "-d", "300")
    time.sleep(0.5)
    s.signal(signal.SIGSTOP)
    time.sleep(2)
    s.signal(signal.SIGCONT)
    unhurt(load)
    b.succeed(30)
    t.accelerated(8 + 8)


@test
def redis_client_stopped(t):
    """SIGSTOP of a client process for 2 s: other clients are served meanwhile, and it goes on after SIGCONT."""
    s = t.redis()
    load, b = loaded(t, s, 4, 5, 12), bench(t, s, 16, 50000, "-t", "set,get", "-d", "300")
    time.sleep(0.5)
    b.signal(signal.SIGSTOP)
    load.signal(signal.SIGSTOP)
    r, n, end = Resp(s.port), 0, time.monotonic() + 2
    while time.monotonic() < end:
        r.call("SET", "meanwhile", n)
        n += 1
    b.signal(signal.SIGCONT)
    load.signal(signal.SIGCONT)
    need(n > 200, f"only {n} operations for others meanwhile")
    unhurt(load)
    b.succeed(30)
    t.accelerated(4 + 8)
