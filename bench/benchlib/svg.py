# SPDX-License-Identifier: Apache-2.0
"""The picture: for each measure a row with two panels, throughput by clients (bars) and latency percentiles (log scale)."""
import math
from html import escape

from .report import gbps, si, size_text, us

COLOURS = ('#8a8f98', '#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00')  # told apart by colour-blind readers, too
WIDTH, MARGIN, GAP = 1120, 70, 110
PANEL = (WIDTH - 2 * MARGIN - GAP) / 2
HEIGHT, ROW = 220, 330
PERCENTILES = (('p50_us', 'p50'), ('p99_us', 'p99'), ('p999_us', 'p99.9'))


class Canvas:
    def __init__(self):
        self.parts = []

    def add(self, text):
        self.parts.append(text)

    def text(self, x, y, s, size=12, anchor='start', colour='#222', weight='normal', rotate=None):
        turn = f' transform="rotate({rotate} {x:.1f} {y:.1f})"' if rotate is not None else ''
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}"{turn}>'
                 f'{escape(s)}</text>')

    def line(self, x1, y1, x2, y2, colour='#ddd', width=1.0):
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>')

    def rect(self, x, y, w, h, colour, title=''):
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{max(h, 0.5):.1f}" fill="{colour}">'
                 f'<title>{escape(title)}</title></rect>')

    def dot(self, x, y, r, colour, hollow=False, title=''):
        fill = f'fill="#fff" stroke="{colour}" stroke-width="2"' if hollow else f'fill="{colour}"'
        self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" {fill}><title>{escape(title)}</title></circle>')


def nice_step(top):
    raw = top / 5
    mag = 10 ** math.floor(math.log10(raw))
    return next(m * mag for m in (1, 2, 2.5, 5, 10) if m * mag >= raw)


def tick(value):
    for limit, suffix in ((1e6, ' M'), (1e3, ' k')):
        if value >= limit:
            return f'{value / limit:g}{suffix}'
    return f'{value:g}'


def slots(x0, clients, sides):
    """Where each client count's group begins, and how wide one side's slot is."""
    group = PANEL / len(clients)
    width = min(group * 0.8 / len(sides), 80)
    return {c: x0 + (i + 0.5) * group - width * len(sides) / 2 for i, c in enumerate(clients)}, width


def frame(cv, x0, y0, clients, title, unit):
    cv.text(x0, y0 - 12, title, 13, weight='bold')
    cv.line(x0, y0 + HEIGHT, x0 + PANEL, y0 + HEIGHT, '#444')
    cv.text(x0 - 52, y0 + HEIGHT / 2, unit, 11, 'middle', '#555', rotate=-90)
    for i, c in enumerate(clients):
        group = PANEL / len(clients)
        cv.text(x0 + (i + 0.5) * group, y0 + HEIGHT + 18, f'{c} client{"s" if c != 1 else ""}', 12, 'middle')


def throughput(cv, x0, y0, lines, sides, clients, value, unit):
    top = max(value(x) for x in lines) * 1.1 or 1
    step = nice_step(top)
    frame(cv, x0, y0, clients, 'Throughput (higher is better)', unit)
    for i in range(int(top / step) + 1):
        y = y0 + HEIGHT - HEIGHT * i * step / top
        cv.line(x0, y, x0 + PANEL, y)
        cv.text(x0 - 6, y + 4, tick(i * step), 11, 'end', '#555')
    begin, width = slots(x0, clients, sides)
    for x in lines:
        h = HEIGHT * value(x) / top
        left = begin[x['clients']] + width * sides.index(x['side'])
        label = f'{value(x):.1f}' if unit == 'Gb/s' else si(value(x))
        cv.rect(left + 1, y0 + HEIGHT - h, width - 2, h, COLOURS[sides.index(x['side']) % len(COLOURS)], f'{x["side"]}: {label} {unit}')
        if width > 24:
            cv.text(left + width / 2, y0 + HEIGHT - h - 4, label, 10, 'middle')


def latency(cv, x0, y0, lines, sides, clients):
    values = [x[k] for x in lines for k, _ in PERCENTILES if x[k]]
    frame(cv, x0, y0, clients, 'Latency: p50, p99, p99.9 (lower is better, log scale)', 'microseconds')
    if not values:
        cv.text(x0 + PANEL / 2, y0 + HEIGHT / 2, 'no single operations to time', 12, 'middle', '#777')
        return
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    high = max(high, low + 1)

    def at(v):
        return y0 + HEIGHT - HEIGHT * (math.log10(v) - low) / (high - low)

    for d in range(low, high + 1):
        cv.line(x0, at(10 ** d), x0 + PANEL, at(10 ** d), '#ccc')
        cv.text(x0 - 6, at(10 ** d) + 4, tick(10.0 ** d), 11, 'end', '#555')
        for m in (2, 5):
            if d < high:
                cv.line(x0, at(m * 10 ** d), x0 + PANEL, at(m * 10 ** d), '#eee')
    begin, width = slots(x0, clients, sides)
    for x in lines:
        points = [(at(x[k]), name, x[k]) for k, name in PERCENTILES if x[k]]
        if not points:
            continue
        colour = COLOURS[sides.index(x['side']) % len(COLOURS)]
        mid = begin[x['clients']] + width * (sides.index(x['side']) + 0.5)
        cv.line(mid, points[0][0], mid, points[-1][0], colour, 2)
        for n, (y, name, v) in enumerate(points):
            cv.dot(mid, y, (6, 4.5, 3)[n], colour, n > 0, f'{x["side"]} {name}: {us(v)} us')
        if width > 44:
            cv.text(mid + 9, points[0][0] + 4, us(points[0][2]), 10)


def write_svg(path, lines):
    floors = [x for x in lines if x['app'] == 'floor']
    lines = [x for x in lines if x['app'] != 'floor' and x['rate']]
    sides = list(dict.fromkeys(x['side'] for x in lines))
    measures = list(dict.fromkeys((x['app'], x['op'], x['size']) for x in lines))
    cv = Canvas()
    cv.text(MARGIN, 34, 'culvert: comparison with kernel TCP', 20, weight='bold')
    x = MARGIN
    for i, s in enumerate(sides):
        cv.rect(x, 50, 14, 14, COLOURS[i % len(COLOURS)])
        cv.text(x + 20, 62, s, 13)
        x += 50 + 8 * len(s)
    cv.dot(x + 10, 57, 6, '#444')
    cv.text(x + 20, 62, 'p50', 12)
    cv.dot(x + 60, 57, 4.5, '#444', True)
    cv.text(x + 70, 62, 'p99', 12)
    cv.dot(x + 110, 57, 3, '#444', True)
    cv.text(x + 120, 62, 'p99.9', 12)
    if floors:
        cv.text(MARGIN, 84, 'Floor of this machine: ' + ', '.join(
            f'{f["op"]} {f["p50_us"]:.2f} us (p50)' if f['op'] == 'cacheline' else f'{f["op"]} {gbps(f):.0f} Gb/s' for f in floors), 12,
            colour='#555')
    y = 165
    for app, op, size in measures:
        mine = [x for x in lines if (x['app'], x['op'], x['size']) == (app, op, size)]
        clients = sorted({x['clients'] for x in mine})
        cv.text(MARGIN - 52, y - 34, f'{app} {op}, {size_text(size)}', 15, weight='bold')
        if app == 'stream':
            throughput(cv, MARGIN, y, mine, sides, clients, gbps, 'Gb/s')
        else:
            throughput(cv, MARGIN, y, mine, sides, clients, lambda x: x['rate'], 'operations/s')
        latency(cv, MARGIN + PANEL + GAP, y, mine, sides, clients)
        y += ROW
    with open(path, 'w') as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y - 60}" viewBox="0 0 {WIDTH} {y - 60}" '
                'font-family="Helvetica, Arial, sans-serif">\n'
                f'<rect width="{WIDTH}" height="{y - 60}" fill="#fff"/>\n' + '\n'.join(cv.parts) + '\n</svg>\n')
