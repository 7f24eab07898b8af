# SPDX-License-Identifier: Apache-2.0
"""redis-server and redis-benchmark."""
import re
import shutil
import socket
import time

from .proc import BenchError


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def command(port, *words, timeout=5):
    """One command over a plain connection of the driver's own; the first line of the reply."""
    data = f'*{len(words)}\r\n'.encode()
    for w in words:
        b = w if isinstance(w, bytes) else str(w).encode()
        data += b'$%d\r\n%s\r\n' % (len(b), b)
    with socket.create_connection(('127.0.0.1', port), timeout=timeout) as s:
        s.sendall(data)
        reply = b''
        while not reply.endswith(b'\r\n'):
            part = s.recv(65536)
            if not part:
                break
            reply += part
    return reply.split(b'\r\n')[0].decode(errors='replace')


def start_on_free_port(pool, argv_of, ready, env, cpu, what):
    """A port found free may be taken before the server binds it: try again with another."""
    last = None
    for _ in range(5):
        port = free_port()
        child = pool.spawn(argv_of(port), env, cpu)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and not child.poll(0.01):
            try:
                if ready(port):
                    return child, port
            except OSError:
                continue
        last = child.failure('not ready' if child.returncode is None else f'ended with status {child.returncode}')
        child.end()
    raise BenchError(f'{what} does not start: {last}')


class Redis:
    name = 'redis'

    def __init__(self, ctx):
        self.ctx = ctx
        for tool in ('redis-server', 'redis-benchmark'):
            if not shutil.which(tool):
                raise BenchError(f'{tool} not found: install redis, or leave redis out of --apps')
        self.server_path = shutil.which('redis-server')
        self.benchmark_path = shutil.which('redis-benchmark')
        self.requests = {}

    def ops(self):
        return [op for op in ('GET', 'SET') if op in self.ctx.redis_ops]

    def start(self, env, prefix=()):
        """prefix: a tool's command line before redis-server's."""
        return start_on_free_port(self.ctx.pool, lambda port: [
            *prefix, self.server_path, '--port', str(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--daemonize', 'no',
            '--dir', self.ctx.pool.dir],
            lambda port: command(port, 'PING', timeout=1) == '+PONG', env, self.ctx.cpu('server'), 'redis-server')

    def stop(self, child, port):
        try:
            command(port, 'SHUTDOWN', 'NOSAVE')
        except OSError:
            pass
        child.wait(10)

    def argv(self, port, op, clients, size, count):
        return [self.benchmark_path, '-h', '127.0.0.1', '-p', str(port), '-t', op.lower(), '-c', str(clients), '-d', str(size),
                '-n', str(count)]

    def load(self, port, side, stats_dir, op, clients, size, count, timeout):
        child = self.ctx.pool.spawn(self.argv(port, op, clients, size, count), side.env('client', stats_dir), self.ctx.cpu('client'))
        child.wait(timeout)
        return child, parse(child)

    def calibrate(self, side, op, clients, size):
        """How many requests take about --seconds on this side: found once, by short runs against a server of their own."""
        key = (side.name, op, clients, size)
        if key not in self.requests:
            stats_dir = self.ctx.new_stats_dir()
            server, port = self.start(side.env('server', stats_dir))
            command(port, 'SET', 'key:__rand_int__', 'x' * size)
            count = max(4000, 50 * clients)
            for _ in range(4):
                _child, result = self.load(port, side, stats_dir, op, clients, size, count, 60)
                if count / result['rate'] >= min(0.3, self.ctx.seconds / 2):
                    break
                count = int(count * max(2, 0.4 * result['rate'] / count))
            self.stop(server, port)
            self.requests[key] = max(100 * clients, int(result['rate'] * self.ctx.seconds))
        return self.requests[key]

    def run(self, side, stats_dir, op, clients, size):
        count = self.calibrate(side, op, clients, size)
        server, port = self.start(side.env('server', stats_dir))
        command(port, 'SET', 'key:__rand_int__', 'x' * size)
        before = self.ctx.cpu_so_far(server)
        client, result = self.load(port, side, stats_dir, op, clients, size, count, self.ctx.seconds * 10 + 60)
        server_cpu = self.ctx.cpu_so_far(server) - before
        self.stop(server, port)
        result['cpu_us_per_op'] = (server_cpu + client.cpu_us()) / count
        result['pids'] = {'server': server.pid, 'client': client.pid}
        result['streams'] = clients
        return result


def parse(child):
    """The plain output, not --csv: only that has the percentile above 99 (times are in ms, to the microsecond)."""
    text = child.output().replace('\r', '\n')
    rate = re.search(r'throughput summary: ([\d.]+) requests per second', text)
    percentiles = text.split('Cumulative distribution')[0]
    dist = [(float(p), float(ms)) for p, ms in re.findall(r'^([\d.]+)% <= ([\d.]+) milliseconds', percentiles, re.M)]
    summary = re.search(r'avg\s+min\s+p50\s+p95\s+p99\s+max\s*\n\s*([\d.\s]+)', text)
    if not rate or not summary or not dist or float(rate[1]) <= 0:
        raise child.failure('output not understood')
    _avg, _min, p50, _p95, p99, _max = (float(x) * 1000 for x in summary[1].split()[:6])
    p999 = next((ms for p, ms in dist if p >= 99.9), dist[-1][1]) * 1000
    return {'rate': float(rate[1]), 'p50_us': p50, 'p99_us': p99, 'p999_us': p999}
