"""bench/report: what it prints can be put into docs/performance.md and docs/performance-rows.md as it is."""
import json, pathlib, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def row(name, unit, value, **goal):
    return {'name': name, 'unit': unit, 'ours': value, 'ours_min': value, 'ours_max': value, 'ours_cpu_us': 1} | ({'goal': goal} if goal else {})


RESULTS = [
    row('null_rtt', 'us', 11, at_most=1.15, of='reference', found=1.1, met=True),
    row('getattr_rtt', 'us', 11, at_most=1.15, of='reference', found=1.153, met=False),
    row('rand_read_4k_32', 'calls/s', 565766, at_least=600000, found=565766, met=False),
    row('poll_null_rtt', 'us', 11, at_most=1.15, of='reference', found=1.1, met=True),
    *(row('crc_' + name, 'us', 11, at_least=0.8, of=name, found=found, met=True) for name, found in
      (('null_rtt', 1), ('getattr_rtt', 0.86), ('null_rate_32', 1.32), ('null_rate_128', 1), ('read_1m', 1), ('rand_read_4k_32', 1))),
]


def sections(page):
    """heading -> its lines."""
    found = {}
    for line in page.splitlines():
        if line.startswith('## '):
            lines = found.setdefault(line[3:], [])
        elif found:
            lines.append(line)
    return found


def printed():
    with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
        json.dump({'machine': 'one', 'results': RESULTS}, file)
        file.flush()
        done = subprocess.run([sys.executable, ROOT / 'bench/report', 'no_program', '--from', file.name], check=True, stdout=subprocess.PIPE, text=True)
    return sections(done.stdout)


class Report(unittest.TestCase):
    def test_prints_the_tables_that_the_pages_have(self):
        new = printed()
        for page, headings in (('performance.md', ('Goals', 'Main rows')), ('performance-rows.md', ('Other set-ups',))):
            there = sections((ROOT / 'docs' / page).read_text())
            for heading in headings:
                head = next(line for line in new[heading] if line.startswith('|'))
                self.assertIn(head, there.get(heading, []), f'{page}, {heading}')

    def test_puts_rows_with_the_same_bound_into_one_line(self):
        self.assertEqual([line for line in printed()['Goals'] if '`' in line], [
            '| NULL and GETATTR round trip, waiting as loops do | `null_rtt`, `getattr_rtt` | at most 1.15 x raw | 1.10, 1.153 **missed** |',
            '| random READ of 4 KiB, depth 32 | `rand_read_4k_32` | at least 600 000 calls/s | 565 766 **missed** |',
            '| NULL and GETATTR round trip, always looking | `poll_null_rtt` | at most 1.15 x raw | 1.10 |',
            '|  | `crc_*` (6 rows) | at least 0.8 x the same without `crc_` | 0.86 to 1.32 |'])


unittest.main()
