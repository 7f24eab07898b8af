# SPDX-License-Identifier: Apache-2.0
"""Each side of an upgrade killed, stopped and delayed at every step: strace sits on the agent's thread and strikes at one of its system calls.

The calls are those of a run that nothing disturbs, from the first until some way into the link. The peer must go on over TCP, or see what TCP would
show; no byte is lost, repeated or changed, and nobody hangs.
"""
import os
import re
import socket
import subprocess
import threading
import time

import lib
from lib import Failure, Missing, need

TESTS = []
SIDES = ("connect", "accept")
TCP_ENDS = {"EOF", "ECONNRESET", "EPIPE"}
BOTH = ("poll", "threads")
PACED_MS = 60
AFTER_FENCE = 30  # calls
AT_ONCE = 6  # runs side by side: they sleep most of the time


def test(fn):
    TESTS.append(fn)
    return fn


class Strike:
    """What befalls the agent of one side at its n-th call of one kind."""

    def __init__(self, what, side, call, n, style, impatient):
        self.what, self.side, self.call, self.n, self.style, self.impatient = what, side, call, n, style, impatient

    def inject(self):
        if self.what == "kill":
            return f"{self.call}:signal=SIGKILL:when={self.n}"
        if self.what == "stop":
            return f"{self.call}:signal=SIGSTOP:when={self.n}"
        return f"{self.call}:delay_enter=150000:when={self.n}"

    def __str__(self):
        return f"{self.what},{self.side},{self.call},{self.n},{self.style},{int(self.impatient)}"


class Pair:
    """Two ends of one connection, each with an agent that runs already."""

    def __init__(self, t, style, impatient, tag):
        env = {"CULVERT_UPGRADE_AFTER": "0", "CULVERT_UPGRADE_WAIT": None, "CULVERT_HANDSHAKE_TIMEOUT": "100ms" if impatient else None}
        full = {k: v for k, v in os.environ.items() if not k.startswith("CULVERT_") and k != "LD_PRELOAD"}
        full.update({k: v for k, v in {**t.culvert_env(), **env}.items() if v is not None})
        self.p, self.files, self.tracers = {}, {}, []
        exe = lib.helper("duplex")
        for side in SIDES:
            self.files[side] = os.path.join(t.dir, f"{tag}.{side}")
            self.p[side] = subprocess.Popen([exe, side, style, self.files[side], str(PACED_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, env=full, text=True)
        with t.guard:
            t.loose += self.p.values()
        self.port = int(self.line("accept").split()[1])
        with socket.create_server(("127.0.0.1", 0)) as warm:
            for side in SIDES:
                self.say(side, f"warm {warm.getsockname()[1]}")
                self.line(side)

    def say(self, side, text):
        self.p[side].stdin.write(text + "\n")
        self.p[side].stdin.flush()

    def line(self, side):
        return self.p[side].stdout.readline().strip()

    def agent(self, side):
        end = time.monotonic() + 5
        while True:
            tasks = [int(x) for x in os.listdir(f"/proc/{self.p[side].pid}/task")]
            if len(tasks) == 2:
                return max(tasks, key=lambda x: x != self.p[side].pid)
            need(time.monotonic() < end, "the agent does not run")
            time.sleep(0.005)

    def trace(self, t, side, log, inject=None):
        cut = ["-e", f"inject={inject}"] if inject else []
        tracer = subprocess.Popen([lib.program("strace"), "-qq", "-o", log, "-e", "trace=all", *cut, "-p", str(self.agent(side))],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with t.guard:
            t.loose.append(tracer)
        self.tracers.append(tracer)
        end = time.monotonic() + 5
        while not self.traced(side):
            need(tracer.poll() is None, f"strace: {tracer.stderr.read() if tracer.poll() is not None else ''}")
            need(time.monotonic() < end, "strace does not attach")
            time.sleep(0.005)

    def traced(self, side):
        try:
            with open(f"/proc/{self.p[side].pid}/task/{self.agent(side)}/status") as f:
                return "TracerPid:\t0\n" not in f.read()
        except OSError:
            return True

    def go(self):
        self.say("connect", f"go {self.port}")
        self.say("accept", "go 0")

    def accepted(self, side):
        with open(self.files[side], "rb") as f:
            return int.from_bytes(f.read(8), "little")

    def outcome(self, side):
        """Its last words as a dict, or None when it was killed."""
        try:
            out, _ = self.p[side].communicate(timeout=25)
        except subprocess.TimeoutExpired:
            raise Failure(f"{side} hangs") from None
        if self.p[side].returncode == -9:
            return None
        need(self.p[side].returncode == 0, f"{side} ended with {self.p[side].returncode}: {out.strip()[-200:]}")
        w = out.strip().split("\n")[-1].split()
        r = dict(zip(w[::2], w[1::2]))
        need(r.get("bad") == "-1", f"{side}: byte {r.get('bad')} is wrong ({' '.join(w)})")
        return {**r, "sent": int(r["sent"]), "got": int(r["got"])}

    def close(self):
        for p in [*self.p.values(), *self.tracers]:
            if p.poll() is None:
                p.kill()
            p.wait()
            for f in (p.stdin, p.stdout, p.stderr):
                if f:
                    f.close()


def stopped(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "Tt"
    except OSError:
        return False


def resume(pair, side):
    """Let it lie for a while, then go on. All threads are stopped when the main one is."""
    p, end = pair.p[side], time.monotonic() + 5
    while p.poll() is None and time.monotonic() < end:
        if stopped(p.pid):
            time.sleep(0.15)
            p.send_signal(18)
            return
        time.sleep(0.01)


def struck(t, s, tag):
    pair = Pair(t, s.style, s.impatient, tag)
    other = SIDES[s.side == SIDES[0]]
    try:
        pair.trace(t, s.side, os.path.join(t.dir, f"{tag}.strace"), s.inject())
        pair.go()
        if s.what == "stop":
            resume(pair, s.side)
        live, hit = pair.outcome(other), pair.outcome(s.side)
        need(live is not None, f"{other} died")
        if hit is None:
            need(s.what == "kill", f"{s.side} was killed")
            need(live["read"] in TCP_ENDS, f"{other} saw {live['read']}")
            need(live["write"] in TCP_ENDS | {"all"}, f"{other} saw {live['write']} when it wrote")
            if live["read"] == "EOF" and live["write"] != "ECONNRESET":  # a reset is told once, to whoever comes first
                need(live["got"] >= pair.accepted(s.side), f"a clean end, but {pair.accepted(s.side) - live['got']} bytes of those accepted are lost ({live})")
            return True
        for a, b in ((live, hit), (hit, live)):
            need(a["write"] == "all" and a["read"] == "EOF" and a["got"] == b["sent"], f"{other}: {live}; {s.side}: {hit}")
        return s.what != "kill"
    except Failure as e:
        raise Failure(f"{s}: {e}") from None
    finally:
        pair.close()


def calls(t, side, style):
    """The agent's system calls in a run that nothing disturbs, until it is on the link and some more: (name, which of that name)."""
    pair, log = Pair(t, style, False, f"calls.{side}"), os.path.join(t.dir, f"calls.{side}")
    try:
        pair.trace(t, side, log)
        pair.go()
        for s in SIDES:
            need(pair.outcome(s)["write"] == "all", f"{s} did not end well undisturbed")
        pair.tracers[0].wait(5)
    finally:
        pair.close()
    with open(log) as f:
        names = [m.group(1) for m in (re.match(r"(\w+)\(", line) for line in f) if m]
    need("sendto" in names, "no fence was written")
    names = names[:names.index("sendto") + AFTER_FENCE]
    steps = [(name, names[:i + 1].count(name)) for i, name in enumerate(names)]
    return [s for s in steps if s != ("epoll_pwait", 1) and (s[0] != "rt_sigaction" or s[1] < 3)]  # the first is where it idles


def again(t, strike):
    """One strike, to look into it: what,side,call,n,style,impatient."""
    what, side, call, n, style, impatient = strike.split(",")
    t.loose, t.guard = [], threading.Lock()
    struck(t, Strike(what, side, call, int(n), style, impatient == "1"), "again")


def every_step(t, what, step=1):
    """All strikes of a kind, some at a time; the first failures end it."""
    if t.plain:
        raise Missing("there is nothing to strike at over plain TCP")
    lib.program("strace")
    t.loose, t.guard = [], threading.Lock()
    strikes = []
    for i, side in enumerate(SIDES):
        steps = calls(t, side, "poll")[i % step::step]
        strikes += [Strike(what, side, call, n, BOTH[k % 2], k % 3 == 1) for k, (call, n) in enumerate(steps)]
    failures, left, lock = [], list(enumerate(strikes)), threading.Lock()

    def work():
        while True:
            with lock:
                if not left or len(failures) > 3:
                    return
                tag, s = left.pop(0)
            try:
                struck(t, s, tag)
            except (Failure, OSError) as e:
                with lock:
                    failures.append(str(e))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(AT_ONCE)]
    for th in threads:
        th.start()
    try:
        for th in threads:
            th.join()
    finally:
        left.clear()
        for p in t.loose:
            if p.poll() is None:
                p.kill()
                p.wait()
    need(not failures, f"{len(failures)} of {len(strikes)} strikes: " + "; ".join(failures))


@test
def handshake_killed(t):
    """kill -9 of either side at every step: the other reads what was accepted, and an end that TCP shows."""
    every_step(t, "kill")


@test
def handshake_stopped(t):
    """SIGSTOP of either side at every step, for longer than the handshake may take in a third of the runs, then SIGCONT."""
    every_step(t, "stop")


@test
def handshake_delayed(t):
    """Either side's agent delayed at every step, beyond the handshake's time-out in a third of the runs."""
    every_step(t, "delay")
