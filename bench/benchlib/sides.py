# SPDX-License-Identifier: Apache-2.0
"""The sides of a comparison (tcp, culvert, further preload libraries), and the proof that culvert was at work.

A number is worth nothing if the streams were on TCP all the time, so every culvert run is checked against the stats segments that its
processes leave behind: all of the load's connections switched on both ends, and at least MIN_SHARE of the bytes over the link.
"""
import json
import os
import subprocess
import tempfile

from .proc import BenchError, say

MIN_SHARE = 0.99
SEGMENT_MISSING = 'the process left no stats: was the library loaded?'


class Side:
    """name: as in the output. preload: {'server': path or None, 'client': ...}. proves: culvert with both ends preloaded."""

    def __init__(self, name, server=None, client=None, culvert=False, extra=None):
        self.name = name
        self.preload = {'server': server, 'client': client}
        self.culvert = culvert
        self.proves = culvert and bool(server) and bool(client)
        self.extra = extra or {}

    def env(self, role, stats_dir):
        env = {k: v for k, v in os.environ.items() if k != 'LD_PRELOAD' and not k.startswith('CULVERT_')}
        if self.preload[role]:
            env['LD_PRELOAD'] = self.preload[role]
            env.update(self.extra)
            if self.culvert:
                env['CULVERT_STATS_DIR'] = stats_dir
                env['CULVERT_STATS_KEEP'] = 'yes'
        return env


def warn_about_environment():
    dropped = [k for k in os.environ if k.startswith('CULVERT_') or k == 'LD_PRELOAD']
    if dropped:
        say(f'bench: not handed on to the programs: {", ".join(sorted(dropped))} (use --env KEY=VALUE)')


def find_file(path, what, hint):
    if not os.path.isfile(path):
        raise BenchError(f'{what} not found: {path}; {hint}')
    return os.path.abspath(path)


def add_options(p, top):
    """The options that say what is compared; finish_options() completes them."""
    p.add_argument('--sides', default='tcp,culvert', help='built-in sides, the first is the base of all ratios (default %(default)s)')
    p.add_argument('--side', action='append', default=[], metavar='NAME=/path/lib.so', help='a further preload library to compare with')
    p.add_argument('--lib', default=os.path.join(top, 'build', 'lib', 'libculvert.so'), help='libculvert.so (default: build/lib)')
    p.add_argument('--culvert', help='the culvert program, for the proof (default: bin/culvert beside the library\'s directory)')
    p.add_argument('--programs', help='directory of the built load programs (default: bench beside the library\'s directory)')
    p.add_argument('--profile', default='default', help='culvert profile (default: %(default)s)')
    p.add_argument('--env', action='append', default=[], metavar='KEY=VALUE', help='for the processes on the culvert side only')
    p.add_argument('--pin', metavar='A,B', help='pin the server to CPU A and the client to CPU B (default: nothing is pinned)')
    p.add_argument('--json', metavar='FILE', help='write a JSON line for each result')


def finish_options(a):
    """Raises ValueError with a sentence."""
    a.culvert = a.culvert or os.path.join(os.path.dirname(os.path.abspath(a.lib)), '..', 'bin', 'culvert')
    a.pin = [int(c) for c in a.pin.split(',')] if a.pin else None
    if a.pin and len(a.pin) != 2:
        raise ValueError('--pin wants two CPUs')
    if a.pin and not set(a.pin) <= os.sched_getaffinity(0):
        raise ValueError(f'--pin: not among the CPUs that may be used: {sorted(os.sched_getaffinity(0))}')


def make_sides(args):
    """From --sides, --side, --lib, --profile, --one-sided, --env. The first side is what ratios refer to."""
    extra = {}
    for e in args.env:
        key, eq, value = e.partition('=')
        if not eq or not key:
            raise BenchError(f'--env {e}: want KEY=VALUE')
        extra[key] = value
    if args.profile and args.profile != 'default':
        extra['CULVERT_PROFILE'] = args.profile
    others = {}
    for s in args.side:
        name, eq, path = s.partition('=')
        if not eq or not name:
            raise BenchError(f'--side {s}: want NAME=/path/lib.so (an empty path: nothing is preloaded)')
        path = find_file(path, f'library of side {name}', 'give an existing shared object') if path else None
        others[name] = Side(name, path, path)
    sides = []
    for name in args.sides.split(','):
        if name == 'tcp':
            sides.append(Side('tcp'))
        elif name == 'culvert':
            lib = find_file(args.lib, 'libculvert.so', 'build it first (./quickstart build), or say where it is with --lib; '
                            '--sides tcp measures kernel TCP alone')
            only = args.one_sided
            sides.append(Side('culvert' if not only else f'culvert-{only}-only', lib if only != 'client' else None,
                              lib if only != 'server' else None, culvert=True, extra=extra))
        else:
            raise BenchError(f'--sides: unknown side "{name}": tcp and culvert are known; others come with --side NAME=/path/lib.so')
    sides += others.values()
    names = [s.name for s in sides]
    if len(set(names)) != len(names):
        raise BenchError('two sides have the same name')
    if any(s.proves for s in sides) and not os.access(args.culvert, os.X_OK):
        raise BenchError(f'the culvert program is needed to prove acceleration: {os.path.normpath(args.culvert)} not found (--culvert)')
    return sides


class Proof:
    """What the stats of one run say. accelerated: the smaller of both ends' counts; share: of all bytes of both ends."""

    def __init__(self, accelerated=0, share=0.0, problem=None, processes=None):
        self.accelerated = accelerated
        self.share = share
        self.problem = problem
        self.processes = processes or {}


def read_stats(culvert, stats_dir):
    """{pid: totals} of the processes that left a segment in stats_dir, with their reasons under 'reasons'."""
    try:
        done = subprocess.run([culvert, 'stat', '--dir', stats_dir, '--json', '--keep-dead'], capture_output=True, text=True, timeout=20,
                              check=False, env={k: v for k, v in os.environ.items() if k != 'LD_PRELOAD'})
    except (OSError, subprocess.TimeoutExpired) as e:
        raise BenchError(f'culvert stat: {e}') from e
    if done.returncode:
        raise BenchError(f'culvert stat: exit status {done.returncode}: {done.stderr.strip()}')
    try:
        doc = json.loads(done.stdout)
    except ValueError as e:
        raise BenchError(f'culvert stat --json: not JSON: {e}') from e
    try:
        return {int(p['pid']): {**p['totals'], 'reasons': p.get('reasons', {})} for p in doc['processes']}
    except (KeyError, TypeError) as e:
        raise BenchError(f'culvert stat --json: unexpected form: {e!r}') from e


def why_not(ends):
    """What culvert itself counted as reasons, in brackets, or nothing."""
    found = [f'{role}: {name} {n}' for role, c in ends.items() if c for name, n in c['reasons'].items() if n and name != 'closed']
    return f' ({", ".join(found)})' if found else ''


def prove(culvert, stats_dir, pids, streams, long_lived, min_share=MIN_SHARE):
    """pids: {'server': pid, 'client': pid}; streams: connections of the load."""
    try:
        stats = read_stats(culvert, stats_dir)
    except BenchError as e:
        return Proof(problem=str(e))
    ends = {role: stats.get(pid) for role, pid in pids.items()}
    missing = [role for role, c in ends.items() if c is None]
    link = sum(c.get(k, 0) for c in ends.values() if c for k in ('tx_link_bytes', 'rx_link_bytes'))
    tcp = sum(c.get(k, 0) for c in ends.values() if c for k in ('tx_tcp_bytes', 'rx_tcp_bytes'))
    share = link / (link + tcp) if link + tcp else 0.0
    accelerated = 0 if missing else int(min(streams, *(c.get('streams_upgraded', 0) for c in ends.values())))
    proof = Proof(accelerated, share, None, ends)
    # Processes with short connections only may never have had a stream worth tracking.
    if missing and long_lived:
        proof.problem = f'{" and ".join(missing)}: {SEGMENT_MISSING}'
    elif long_lived and accelerated < streams:
        proof.problem = f'{accelerated} of {streams} long-lived streams were accelerated{why_not(ends)}'
    elif long_lived and share < min_share:
        proof.problem = f'{share * 100:.2f} % of the bytes went over the link, want {min_share * 100:.0f} % (a longer --seconds helps ' \
                        'when the connections do little before they upgrade)'
    return proof


def new_stats_dir(pool):
    path = tempfile.mkdtemp(prefix='stats-', dir=pool.dir)
    os.chmod(path, 0o1777)
    return path
