# SPDX-License-Identifier: Apache-2.0
"""Results as JSON lines and as a table for people."""
import json
import statistics

FIELDS = ('app', 'op', 'clients', 'size', 'side', 'rate', 'p50_us', 'p99_us', 'p999_us', 'cpu_us_per_op', 'accelerated', 'streams',
          'link_bytes_share')
MEASURED = ('rate', 'p50_us', 'p99_us', 'p999_us', 'cpu_us_per_op')


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def summarize(app, op, clients, size, side, rounds):
    """One line from the rounds of one side. What proves acceleration is not a median but the worst round."""
    line = {'app': app, 'op': op, 'clients': clients, 'size': size, 'side': side}
    line.update({k: median([r.get(k) for r in rounds]) for k in MEASURED})
    line['accelerated'] = min(r['accelerated'] for r in rounds)
    line['streams'] = max(r['streams'] for r in rounds)
    line['link_bytes_share'] = min(r['link_bytes_share'] for r in rounds)
    return line


def floor_lines(rounds):
    """rounds: what run_floor returned, each time."""
    lines = []
    for op in ('cacheline', 'memcpy', 'memcpy-2cores'):
        got = [r[op] for r in rounds if op in r]
        if got:
            line = {'app': 'floor', 'op': op, 'clients': 1, 'size': got[0]['size'], 'side': 'floor'}
            line.update({k: median([g.get(k) for g in got]) for k in MEASURED})
            line.update({'accelerated': 0, 'streams': 0, 'link_bytes_share': 0.0})
            lines.append(line)
    return lines


def rounded(line):
    digits = {'rate': 1, 'link_bytes_share': 5}
    return {k: round(line[k], digits.get(k, 3)) if isinstance(line[k], float) else line[k] for k in FIELDS}


def write_json(path, lines):
    with open(path, 'w') as f:
        for line in lines:
            f.write(json.dumps(rounded(line)) + '\n')


def gbps(line):
    return line['rate'] * line['size'] * 8 / 1e9


def si(value):
    for limit, suffix in ((1e6, 'M'), (1e3, 'k')):
        if value >= limit:
            return f'{value / limit:.{2 if value < 10 * limit else 1}f} {suffix}'
    return f'{value:.0f}'


def size_text(n):
    return f'{n >> 10} KiB' if n >= 1024 and n % 1024 == 0 else f'{n} B'


def rate_text(line):
    in_gbps = line['app'] == 'stream' or line['op'].startswith('memcpy')
    return f'{gbps(line):.2f} Gb/s' if in_gbps else f'{si(line["rate"])}/s'


def us(value):
    if value is None:
        return '-'
    return f'{value:.2f}' if value < 10 else f'{value:.1f}' if value < 1000 else f'{value:.0f}'


def ratio(a, b):
    return f'{a / b:.2f}x' if a is not None and b else '-'


def floor_of(line, floors):
    """How far from what the hardware allows: pingpong against a cache line's round trip, stream against the two-core copy."""
    if line['app'] == 'pingpong' and 'cacheline' in floors and line['clients'] == 1:
        return f'{line["p50_us"] / floors["cacheline"]["p50_us"]:.1f}x'
    if line['app'] == 'stream' and 'memcpy-2cores' in floors:
        return f'{100 * gbps(line) / gbps(floors["memcpy-2cores"]):.0f} %'
    return ''


def grid(rows, left):
    """Columns of text; the first `left` are left-aligned."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    out = []
    for n, r in enumerate(rows):
        out.append('  '.join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))).rstrip())
        if n == 0:
            out.append('-' * (sum(widths) + 2 * (len(widths) - 1)))
    return out


def table(lines):
    """Ratios are to the first side of the same measure; CPU is server and client together."""
    floors = {x['op']: x for x in lines if x['app'] == 'floor'}
    rows = [('app', 'op', 'clients', 'size', 'side', 'rate', 'p50 us', 'p99 us', 'p99.9 us', 'cpu us/op', 'rate', 'p50', 'cpu', 'accel.',
             'on link', 'floor')]
    base = None
    for x in lines:
        key = tuple(x[k] for k in ('app', 'op', 'clients', 'size'))
        first = base is None or base[0] != key
        if first:
            base = (key, x)
        b = base[1]
        is_floor = x['app'] == 'floor'
        ratios = ['', '', ''] if first else [ratio(x['rate'], b['rate']), ratio(x['p50_us'], b['p50_us']),
                                             ratio(x['cpu_us_per_op'], b['cpu_us_per_op'])]
        rows.append((x['app'] if first else '', x['op'] if first else '', str(x['clients']) if first else '',
                     size_text(x['size']) if first else '', x['side'], rate_text(x), us(x['p50_us']), us(x['p99_us']), us(x['p999_us']),
                     us(x['cpu_us_per_op']), *ratios, '' if is_floor else f'{x["accelerated"]}/{x["streams"]}',
                     f'{100 * x["link_bytes_share"]:.2f} %' if x['accelerated'] else '', '' if is_floor else floor_of(x, floors)))
    return '\n'.join(grid(rows, 5))
