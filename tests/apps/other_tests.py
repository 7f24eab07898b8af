# SPDX-License-Identifier: Apache-2.0
"""Threads that all begin at once; and further servers, where they are installed: PostgreSQL (a process for each connection, signals, signalfd in epoll sets) and
nginx with wrk."""
import glob
import hashlib
import os
import pwd
import re
import subprocess
import time

from lib import Missing, content, free_port, helper, need, program

TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def postgres_programs():
    dirs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not dirs or os.getuid() != 0:
        raise Missing("PostgreSQL is not installed, or we are not root")
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise Missing("there is no user postgres") from None
    return dirs[-1], user


@test
def postgres(t):
    """pgbench against PostgreSQL: parallel workers, which signal each other, reads, writes, and a connection for each transaction."""
    bin_dir, user = postgres_programs()
    as_user = [program("setpriv"), f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    data, port = os.path.join(t.dir, "pg"), str(free_port())
    os.chmod(t.dir, 0o755)
    os.chmod(t.stats, 0o777)
    os.mkdir(data)
    os.chown(data, user.pw_uid, user.pw_gid)
    t.start([*as_user, f"{bin_dir}/initdb", "-A", "trust", "-N", "-D", data], False).succeed(30)
    s = t.start([*as_user, f"{bin_dir}/postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={data}",
                 "-c", "fsync=off"])
    there = {"PGHOST": "127.0.0.1", "PGPORT": port, "PGUSER": "postgres", "PGDATABASE": "postgres"}
    t.until_true("PostgreSQL answers", lambda: t.start([f"{bin_dir}/pg_isready"], False, env=there).p.wait(5) == 0, 15)
    for argv in (["-i", "-s", "3", "-q"], ["-S", "-c", "4", "-T", "1"], ["-S", "-M", "prepared", "-c", "1", "-T", "1"], ["-c", "4", "-j", "2", "-T", "1"],
                 ["-S", "-C", "-c", "4", "-T", "1"]):
        out = t.start([f"{bin_dir}/pgbench", *argv], env=there).succeed(20)
        need("-i" in argv or re.search(r"failed transactions: 0 ", out), f"pgbench {' '.join(argv)}: {out[-300:]}")
    s.signal(2)
    s.wait(10, "PostgreSQL, asked to stop,")
    t.accelerated(9)


@test
def nginx(t):
    """wrk and verified downloads from nginx, with and without sendfile."""
    exe, wrk, curl = program("nginx"), program("wrk"), program("curl")
    ports, www = (free_port(), free_port()), os.path.join(t.dir, "www")
    os.mkdir(www)
    big = content("www", 1000000)
    for name, data in (("small", b"x" * 1000), ("big", big)):
        with open(os.path.join(www, name), "wb") as f:
            f.write(data)
    for d in (t.dir, www):
        os.chmod(d, 0o755)
    os.chmod(t.stats, 0o777)
    temps = " ".join(f"{k}_temp_path {t.dir}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    servers = " ".join(f"server {{ listen 127.0.0.1:{p}; root {www}; sendfile {on}; }}" for p, on in zip(ports, ("on", "off")))
    env = " ".join(f"env {k};" for k in ("LD_PRELOAD", *(k for k in t.culvert_env() if k.startswith("CULVERT_"))))
    with open(os.path.join(t.dir, "nginx.conf"), "w") as f:
        f.write(f"daemon off; worker_processes 2; pid {t.dir}/pid; error_log {t.dir}/error.log; {env} events {{ worker_connections 256; }} "
                f"http {{ access_log off; keepalive_requests 1000000; {temps} {servers} }}")
    t.start([exe, "-c", f"{t.dir}/nginx.conf", "-e", f"{t.dir}/error.log"])
    url = [f"http://127.0.0.1:{p}/" for p in ports]
    t.until_true("nginx answers", lambda: subprocess.run([curl, "-sf", "-o", "/dev/null", url[0] + "small"], timeout=10).returncode == 0, 10)
    for u in url:
        for name, clients in (("small", 8), ("big", 4)):
            out = t.start([wrk, "-t1", f"-c{clients}", "-d1", u + name]).succeed(15)
            need("Requests/sec" in out and "Socket errors" not in out and "Non-2xx" not in out, f"wrk {name}: {out[-300:]}")
        file = os.path.join(t.dir, "got")
        t.start([curl, "-s", *sum((["-o", f"{file}{i}", u + "big"] for i in range(5)), [])]).succeed(15)
        for i in range(5):
            with open(f"{file}{i}", "rb") as f:
                need(hashlib.sha256(f.read()).digest() == hashlib.sha256(big).digest(), "a download came back different")
    time.sleep(0.1)
    t.accelerated(16)


@test
def first_sockets_of_threads(t):
    """Four threads make a program's first sockets at the same moment: all are seen."""
    t.env = {**t.env, "CULVERT_UPGRADE_WAIT": None}
    s = t.redis(preload=False)
    runs = 40
    for _ in range(runs):
        t.start([helper("threads"), str(s.port)]).succeed(10)
    if not t.plain:
        opened = t.counters()[0]["streams_opened"]
        need(opened == 4 * runs, f"{opened} of {4 * runs} connections were seen")
