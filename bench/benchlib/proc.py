# SPDX-License-Identifier: Apache-2.0
"""Child processes with a bound on their time and their CPU accounted for.

Every process that a driver starts is started here, remembered by pid, and ended by pid when the driver ends, whatever the
reason (also Ctrl-C and SIGTERM). Children are told to die with the driver, so that kill -9 leaves nothing either.
"""
import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class BenchError(Exception):
    """A run that gave no result; the text says why."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def sigterm_as_interrupt():
    def handler(_sig, _frame):
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, handler)


def raise_file_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def schedstat_us(pid):
    """CPU time of all threads of a living process so far, in microseconds."""
    total = 0
    try:
        for task in os.listdir(f'/proc/{pid}/task'):
            try:
                with open(f'/proc/{pid}/task/{task}/schedstat') as f:
                    total += int(f.read().split()[0])
            except OSError:
                pass  # the thread ended meanwhile
    except OSError:
        return 0.0
    return total / 1000.0


class Child:
    """One process. Output goes to files: no pipe can fill up and stop it."""

    def __init__(self, pool, argv, env, cpu=None, stdin=False):
        self.pool = pool
        self.argv = argv
        self.name = os.path.basename(argv[0])
        self.out = tempfile.NamedTemporaryFile('w+', dir=pool.dir, prefix=self.name + '.', suffix='.out', delete=False)
        self.err = tempfile.NamedTemporaryFile('w+', dir=pool.dir, prefix=self.name + '.', suffix='.err', delete=False)
        self.returncode = None
        self.usage = None

        def setup():
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})

        try:
            self.popen = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=self.out,
                                          stderr=self.err, preexec_fn=setup, start_new_session=True)
        except OSError as e:
            raise BenchError(f'cannot start {argv[0]}: {e.strerror}') from e
        self.pid = self.popen.pid
        self.pidfd = os.pidfd_open(self.pid)
        pool.live.append(self)

    def output(self):
        with open(self.out.name, errors='replace') as f:
            return f.read()

    def errors(self):
        with open(self.err.name, errors='replace') as f:
            return f.read()

    def poll(self, timeout=0.0):
        """True when it has ended (and its resource usage is known)."""
        if self.returncode is not None:
            return True
        p = select.poll()
        p.register(self.pidfd, select.POLLIN)
        if not p.poll(max(0, int(timeout * 1000))):
            return False
        _pid, status, self.usage = os.wait4(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        self.popen.returncode = self.returncode
        self._forget()
        return True

    def _forget(self):
        os.close(self.pidfd)
        if self.popen.stdin:
            try:
                self.popen.stdin.close()
            except OSError:
                pass
        self.out.close()
        self.err.close()
        if self in self.pool.live:
            self.pool.live.remove(self)

    def failure(self, what):
        tail = ' | '.join((self.errors() or self.output()).strip().splitlines()[-3:])
        return BenchError(f'{self.name}: {what}{": " + tail if tail else ""}')

    def wait(self, timeout, ok=(0,)):
        if not self.poll(timeout):
            self.end()
            raise self.failure(f'did not end within {timeout:.0f} s')
        if ok is not None and self.returncode not in ok:
            raise self.failure(f'signal {-self.returncode}' if self.returncode < 0 else f'exit status {self.returncode}')

    def end(self):
        """Ask, then insist. Only this pid, and only while it is ours to name: it has not been waited for."""
        for sig, patience in ((signal.SIGTERM, 2), (signal.SIGKILL, 5)):
            if self.returncode is not None:
                return
            signal.pidfd_send_signal(self.pidfd, sig)
            if self.poll(patience):
                return

    def signal(self, sig):
        if not self.poll():
            signal.pidfd_send_signal(self.pidfd, sig)

    def cpu_us(self):
        """User and system time of its whole life; after wait()."""
        return (self.usage.ru_utime + self.usage.ru_stime) * 1e6 if self.usage else 0.0

    def wait_line(self, prefix, timeout=10):
        """The rest of the first line of its output that begins with prefix."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ended = self.poll(0.005)
            text = self.output()
            for line in text.splitlines(keepends=True):
                if line.startswith(prefix) and line.endswith('\n'):
                    return line[len(prefix):].strip()
            if ended:
                raise self.failure(f'ended (status {self.returncode}) before it said "{prefix.strip()}"')
        self.end()
        raise self.failure(f'did not say "{prefix.strip()}" within {timeout} s')


class Pool:
    """Owns the children and the scratch directory. Use as a context manager."""

    def __init__(self):
        self.live = []
        self._tmp = None
        self.dir = None

    def __enter__(self):
        self._tmp = tempfile.TemporaryDirectory(prefix='culvert-bench-', ignore_cleanup_errors=True)
        self.dir = self._tmp.name
        os.chmod(self.dir, 0o755)  # servers may drop their privileges and must still reach the stats directory below
        return self

    def __exit__(self, *_exc):
        # A second Ctrl-C must not interrupt the cleaning up.
        old = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for child in list(self.live):
                child.end()
            self._tmp.cleanup()
        finally:
            signal.signal(signal.SIGINT, old)

    def spawn(self, argv, env, cpu=None, stdin=False):
        return Child(self, argv, env, cpu, stdin)

    def end_all(self):
        for child in list(self.live):
            child.end()

    def forget_files(self):
        """Between runs: the output of ended children is no longer needed."""
        for name in os.listdir(self.dir):
            path = os.path.join(self.dir, name)
            if name.endswith(('.out', '.err')) and not any(path in (c.out.name, c.err.name) for c in self.live):
                os.unlink(path)
