"""bench/pair: the quotients of pairs, and which of two programs is the better one, by programs whose figures are known."""
import json, pathlib, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A program whose rows are read from a file, one run after the other; it fails where there are no more.
PROGRAM = '''#!{python}
import json, pathlib
runs = pathlib.Path({runs!r})
first, *rest = json.loads(runs.read_text())
runs.write_text(json.dumps(rest))
print(json.dumps({{'results': [{{'name': name, 'unit': unit, 'ours': ours, 'ours_system_calls': 2}} for name, unit, ours in first]}}))
'''


class Pair(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, runs):
        """`runs`: what it prints each time it is run."""
        (self.folder / f'{name}.json').write_text(json.dumps(runs))
        program = self.folder / name
        program.write_text(PROGRAM.format(python=sys.executable, runs=str(self.folder / f'{name}.json')))
        program.chmod(0o755)
        return program

    def pair(self, old, new, *options):
        return subprocess.run([sys.executable, ROOT / 'bench/pair', self.program('old', old), self.program('new', new), *options],
                              capture_output=True, text=True)

    def rows(self, old, new):
        done = self.pair(old, new, '--json', '--rounds', str(len(old)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row['name']: row for row in json.loads(done.stdout)['rows']}

    def test_takes_the_median_of_the_quotients_of_pairs(self):
        # The machine is four times as fast in the last round: the pair's quotient is the same, that of medians would not be.
        [row] = self.rows([[('r', 'calls/s', 100)], [('r', 'calls/s', 100)], [('r', 'calls/s', 400)]],
                          [[('r', 'calls/s', 150)], [('r', 'calls/s', 150)], [('r', 'calls/s', 600)]]).values()
        self.assertEqual([row['quotient_' + part] for part in ('min', 'lower', 'upper', 'max')], [1.5] * 4)
        self.assertEqual((row['quotient'], row['verdict'], row['old'], row['new']), (1.5, 'better', 100, 150))

    def test_more_is_better_of_rates_and_less_of_times(self):
        rows = self.rows([[('rate', 'calls/s', 4), ('time', 'us', 4), ('flow', 'GB/s', 8)]] * 2, [[('rate', 'calls/s', 8), ('time', 'us', 8), ('flow', 'GB/s', 4)]] * 2)
        self.assertEqual({name: row['verdict'] for name, row in rows.items()}, {'rate': 'better', 'time': 'worse', 'flow': 'worse'})

    def test_gives_no_verdict_where_the_quartiles_lie_on_both_sides_of_one(self):
        [row] = self.rows([[('r', 'us', 10)]] * 4, [[('r', 'us', ours)] for ours in (8, 9, 11, 12)]).values()
        self.assertEqual(row['verdict'], '')

    def test_goes_without_system_calls_where_the_kernel_does_not_count_them(self):
        old, new = self.program('old', [[('r', 'us', 1)]] * 2), self.program('new', [[('r', 'us', 1)]] * 2)
        new.write_text(new.read_text().replace(", 'ours_system_calls': 2", ''))
        done = subprocess.run([sys.executable, ROOT / 'bench/pair', old, new, '--rounds', '2'], capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines()[-1], '| r | 1.00 | 1.00 | us | 1.00 | 1.00, 1.00, 1.00, 1.00 |  | 2.00 |  |')

    def test_has_the_rows_that_both_programs_have_and_says_where_there_is_none(self):
        self.assertEqual(list(self.rows([[('a', 'us', 1), ('b', 'us', 1)]] * 2, [[('b', 'us', 1), ('c', 'us', 1)]] * 2)), ['b'])
        done = self.pair([[('a', 'us', 1)]] * 2, [[('b', 'us', 1)]] * 2, '--rounds', '2')
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('no row in common', done.stderr)

    def test_ends_with_an_error_where_a_program_does(self):
        done = self.pair([[('a', 'us', 1)]], [[('a', 'us', 1)]], '--rounds', '2')
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('ended with 1', done.stderr)


unittest.main()
