# SPDX-License-Identifier: Apache-2.0
"""memcached and memcaslap (libmemcached-tools)."""
import os
import re
import shutil
import signal
import socket

from .proc import BenchError
from .redis import start_on_free_port

WINDOW = 1024  # items that each connection stores before it gets them; memcaslap's smallest


def version(port):
    with socket.create_connection(('127.0.0.1', port), timeout=1) as s:
        s.sendall(b'version\r\n')
        return s.recv(256).startswith(b'VERSION')


class Memcached:
    name = 'memcached'

    def __init__(self, ctx):
        self.ctx = ctx
        self.server_path = shutil.which('memcached')
        self.load_path = shutil.which('memcaslap') or shutil.which('memaslap')
        if not self.server_path or not self.load_path:
            raise BenchError('memcached or memcaslap not found: install memcached and libmemcached-tools, or leave memcached out of --apps')

    def ops(self):
        return ['get']

    def argv(self, port):
        a = [self.server_path, '-t', '4', '-U', '0', '-p', str(port), '-l', '127.0.0.1', '-c', '8192', '-m', '2048']
        return a + ['-u', 'root'] if os.geteuid() == 0 else a

    def config(self, size):
        path = os.path.join(self.ctx.pool.dir, f'memcaslap.{size}.cnf')
        with open(path, 'w') as f:
            f.write(f'key\n16 16 1\nvalue\n{size} {size} 1\ncmd\n0 0.0\n1 1.0\n')
        return path

    def run(self, side, stats_dir, op, clients, size):
        seconds = max(1, round(self.ctx.seconds))
        env = side.env('server', stats_dir)
        server, port = start_on_free_port(self.ctx.pool, self.argv, version, env, self.ctx.cpu('server'), 'memcached')
        before = self.ctx.cpu_so_far(server)
        # Statistics come at the end only when some interval is asked for: one that never comes.
        client = self.ctx.pool.spawn([self.load_path, '-s', f'127.0.0.1:{port}', '-F', self.config(size), '-T', str(min(2, clients)), '-c',
                                      str(clients), '-t', f'{seconds}s', '-w', '1k', '-S', '1000000s'],
                                     side.env('client', stats_dir), self.ctx.cpu('client'))
        client.wait(seconds + 60 + clients / 10)
        server_cpu = self.ctx.cpu_so_far(server) - before
        server.signal(signal.SIGTERM)
        server.wait(10, ok=(0, -signal.SIGTERM))
        result = parse(client, seconds)
        result['cpu_us_per_op'] = (server_cpu + client.cpu_us()) / result.pop('total')
        result['pids'] = {'server': server.pid, 'client': client.pid}
        result['streams'] = clients
        return result


def quantile(dist, events, q):
    """dist[i] counts times in [2^(i-1), 2^i) us; inside a bucket we interpolate, so this is good to perhaps 20 %."""
    want, seen = events * q, 0
    for i, n in enumerate(dist):
        if n and seen + n >= want:
            low = 2.0 ** (i - 1) if i else 0.5
            return low * 2 ** ((want - seen) / n)
        seen += n
    return 0.0


def parse(client, seconds):
    text = client.output()
    block = re.search(r'Get Statistics \((\d+) events\)(.*?)(?:\n\n|\Z)', text, re.S)
    gets, sets, misses = (re.search(rf'^{k}: (\d+)', text, re.M) for k in ('cmd_get', 'cmd_set', 'get_misses'))
    if not block or not gets or not sets or int(block[1]) == 0:
        raise client.failure('output not understood: ' + ' | '.join(text.strip().splitlines()[-3:]))
    if misses and int(misses[1]) > int(gets[1]) // 100:
        raise client.failure(f'{misses[1]} of {gets[1]} gets missed')
    dist = []
    for first, counts in re.findall(r'^\s+(\d+):((?:\s+\d+)+)\s*$', block[2].split('Log2 Dist:')[-1], re.M):
        dist += [0] * (int(first) - len(dist)) + [int(n) for n in counts.split()]
    events = int(block[1])
    return {'rate': events / seconds, 'p50_us': quantile(dist, events, 0.5), 'p99_us': quantile(dist, events, 0.99),
            'p999_us': quantile(dist, events, 0.999), 'total': int(gets[1]) + int(sets[1])}
