"""tools/patches.py: a patch fits where its lines stand by now, and nowhere else."""
import pathlib, sys, tempfile, unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tools'))
import patches

PATCH = '''The limit is off by one.

--- a/src/a/b.cc
+++ b/src/a/b.cc
@@ -2,3 +2,3 @@
 bool fits(int n) {
-  return n < kLimit;
+  return n <= kLimit;
 }
'''
FUNCTION = 'bool fits(int n) {\n  return n < kLimit;\n}\n'
BROKEN = FUNCTION.replace('<', '<=')


class Patches(unittest.TestCase):
    def applied(self, sources, patch=PATCH):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in sources.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            mutant = pathlib.Path(folder, 'R1.patch')
            mutant.write_text(patch)
            return patches.apply(mutant, pathlib.Path(folder))

    def test_fits_where_it_was_made(self):
        self.assertEqual(self.applied({'src/a/b.cc': '#include\n' + FUNCTION}), {'src/a/b.cc': '#include\n' + BROKEN})

    def test_takes_the_nearest_of_several_places(self):
        self.assertEqual(self.applied({'src/a/b.cc': FUNCTION + '\n' * 9 + FUNCTION}), {'src/a/b.cc': BROKEN + '\n' * 9 + FUNCTION})

    def test_follows_lines_that_moved_or_were_indented_anew(self):
        moved = 'int x;\n' * 50 + 'namespace {\n  bool fits(int n) {\n    return n < kLimit;\n  }\n}\n'
        self.assertIn('  bool fits(int n) {\n  return n <= kLimit;\n  }\n', self.applied({'src/a/b.cc': moved})['src/a/b.cc'])

    def test_does_without_the_neighbours_when_the_line_is_the_only_one(self):
        other = 'bool suits(long n) {\n  return n < kLimit;\n  // end\n}\n'
        self.assertIn('  return n <= kLimit;\n  // end\n', self.applied({'src/a/b.cc': other})['src/a/b.cc'])
        with self.assertRaises(patches.DoesNotApply):
            self.applied({'src/a/b.cc': other + other})

    def test_follows_code_into_another_file(self):
        self.assertEqual(self.applied({'src/c/d.cc': FUNCTION, 'src/a/b.cc': '\n'}), {'src/c/d.cc': BROKEN})
        with self.assertRaises(patches.DoesNotApply):
            self.applied({'src/c/d.cc': FUNCTION, 'src/c/e.cc': FUNCTION})

    def test_never_takes_a_test_for_the_product(self):
        with self.assertRaises(patches.DoesNotApply):
            self.applied({'src/a/b_test.cc': FUNCTION})

    def test_names_the_line_that_is_gone(self):
        with self.assertRaisesRegex(patches.DoesNotApply, 'src/a/b.cc has no `return n < kLimit;`'):
            self.applied({'src/a/b.cc': 'int x;\n'})


if __name__ == '__main__':
    unittest.main(argv=['patches_fit'])
