# SPDX-License-Identifier: Apache-2.0
"""The loads. Each has ops() and run(side, stats_dir, op, clients, size), which returns rate (operations a second),
p50_us, p99_us, p999_us, cpu_us_per_op (both processes), pids by role, and streams: how many connections the load had.
"""
import json
import os

from .memcached import Memcached
from .proc import BenchError, schedstat_us
from .redis import Redis
from .sides import new_stats_dir

DEFAULT_SIZES = {'pingpong': 64, 'stream': 65536, 'connect': 64, 'redis': 64, 'memcached': 64}
PROGRAMS = ('pingpong', 'stream', 'connect', 'idlers', 'floor')


class Context:
    """What the loads need to know of the run."""

    def __init__(self, pool, programs, seconds, pin=None, modes=('block', 'spin', 'epoll'), redis_ops=('GET', 'SET')):
        self.pool = pool
        self.programs = programs
        self.seconds = seconds
        self.pin = pin
        self.modes = modes
        self.redis_ops = redis_ops

    def cpu(self, role):
        return self.pin[0 if role == 'server' else 1] if self.pin else None

    def cpu_so_far(self, child):
        return schedstat_us(child.pid)

    def new_stats_dir(self):
        return new_stats_dir(self.pool)

    def program(self, name):
        return os.path.join(self.programs, name)


def find_programs(explicit, lib, top):
    """The directory of the built load programs: --programs, else beside the library, else build/bench."""
    beside = os.path.join(os.path.dirname(os.path.abspath(lib)), '..', 'bench')
    places = [explicit] if explicit else [beside, os.path.join(top, 'build', 'bench'), os.path.join(top, 'bench')]
    for p in places:
        if all(os.access(os.path.join(p, name), os.X_OK) for name in PROGRAMS):
            return os.path.abspath(p)
    raise BenchError(f'load programs ({", ".join(PROGRAMS)}) not found in {", ".join(os.path.normpath(p) for p in places)}: '
                     'build first (./quickstart build), or give --programs DIR')


def last_json(child):
    for line in reversed(child.output().splitlines()):
        if line.startswith('{'):
            return json.loads(line)
    raise child.failure('no result')


class Own:
    """pingpong, stream, connect: our own programs, a server and a client process."""
    long_lived = True

    def __init__(self, ctx):
        self.ctx = ctx

    def options(self, op, clients, size):
        raise NotImplementedError

    def pair(self, side, stats_dir, common, client_only, timeout):
        ctx = self.ctx
        server = ctx.pool.spawn([ctx.program(self.name), 'server'] + common, side.env('server', stats_dir), ctx.cpu('server'))
        port = server.wait_line('port ')
        client = ctx.pool.spawn([ctx.program(self.name), 'client', '--port', port] + common + client_only, side.env('client', stats_dir),
                                ctx.cpu('client'))
        client.wait(timeout)
        server.wait(10)
        return server, client

    def run(self, side, stats_dir, op, clients, size):
        common, client_only = self.options(op, clients, size)
        server, client = self.pair(side, stats_dir, common, client_only, self.ctx.seconds + 60 + clients / 10)
        return self.result(server, client, clients)

    def result(self, server, client, clients):
        r = last_json(client)
        total = max(1, r['total'])
        return {'rate': r['rate'], 'p50_us': r.get('p50_us'), 'p99_us': r.get('p99_us'), 'p999_us': r.get('p999_us'),
                'cpu_us_per_op': (server.cpu_us() + client.cpu_us()) / total, 'pids': {'server': server.pid, 'client': client.pid},
                'streams': clients, 'total': total}


class Pingpong(Own):
    name = 'pingpong'

    def ops(self):
        return list(self.ctx.modes)

    def options(self, op, clients, size):
        return (['--mode', op, '--size', str(size), '--clients', str(clients)],
                ['--seconds', str(self.ctx.seconds), '--warm', str(max(50, 2000 // clients)), '--warm-ms', '300'])


class Stream(Own):
    name = 'stream'

    def ops(self):
        return ['write']

    def options(self, op, clients, size):
        return ['--size', str(size), '--clients', str(clients), '--seconds', str(self.ctx.seconds), '--warm-ms', '300'], []

    def result(self, server, client, clients):
        sent, got = last_json(client), last_json(server)
        if sent['total'] != got['total']:
            raise BenchError(f'stream: {sent["total"]} blocks sent, {got["total"]} received')
        r = super().result(server, client, clients)
        r['rate'] = got['rate']
        return r


class Connect(Own):
    name = 'connect'
    long_lived = False  # short connections are not meant to upgrade

    def ops(self):
        return ['connect']

    def options(self, op, clients, size):
        common = ['--size', str(size), '--clients', str(clients), '--spread', '16']
        return common, ['--seconds', str(self.ctx.seconds), '--warm', '200', '--warm-ms', '200']

    def result(self, server, client, clients):
        r = super().result(server, client, clients)
        r['streams'] = r['total']
        return r


Redis.long_lived = Memcached.long_lived = True
APPS = {'pingpong': Pingpong, 'stream': Stream, 'connect': Connect, 'redis': Redis, 'memcached': Memcached}


def run_floor(ctx, env, seconds, cpus=None):
    """{op: result}: what the hardware allows, or {} where there are no two cores."""
    argv = [ctx.program('floor'), 'run', '--seconds', str(seconds)]
    if cpus:
        argv += ['--cpus', ','.join(map(str, cpus))]
    child = ctx.pool.spawn(argv, env)
    child.wait(seconds * 4 + 20, ok=(0, 77))
    lines = [json.loads(x) for x in child.output().splitlines() if x.startswith('{')]
    return {x['op']: x for x in lines} if child.returncode == 0 else {}
