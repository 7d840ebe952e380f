"""Which tests claim which requirement ids, read from the sources, and what the last run of tools/mutants says of them.

A claim is PROVES("R8166-…") as the first statement of a test; a mutant is tests/mutants/ID.patch or ID.NAME.patch; results
are in tests/mutants/results.json:  {id: {patch file: {"patch": digest, "killed_by": {test: digest of its text}, "how": …}}}
"""
import hashlib, json, pathlib, re
from typing import NamedTuple

from patches import DoesNotApply, apply

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUTANTS = ROOT / 'tests' / 'mutants'
RESULTS = MUTANTS / 'results.json'

TEST = re.compile(r'^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\((\w+), (\w+)\) \{\n(.*?)^\}', re.M | re.S)
PROVES = re.compile(r'PROVES\(([^)]*)\)')


class Test(NamedTuple):
    name: str       # Suite.name
    filter: str     # what --gtest_filter calls it, its instances included
    programs: tuple  # the test programs that contain it
    digest: str     # of its text, white space and claims apart


def digest(text):
    return hashlib.sha256(' '.join(text.split()).encode()).hexdigest()[:16]


def change(patch):
    """The digest of what a patch removes and adds, wherever that stands by now."""
    return digest('\n'.join(line for line in patch.read_text().splitlines() if line[:1] in ('+', '-')))


def modules():
    """All modules of tools/layers.txt, the deepest first."""
    lines = (ROOT / 'tools' / 'layers.txt').read_text().splitlines()
    names = [m[1] for m in (re.match(r'([a-z][a-z0-9_/]*) *:', line) for line in lines) if m]
    return sorted(names, key=len, reverse=True)


def stag_tests(cmake):
    """(program, its sources) of each stag_test() there."""
    return re.findall(r'stag_test\((\w+)\s+SOURCES((?:\s+[\w/]+\.cc)+)', cmake)


def program_of(path, all_modules):
    """The test program that a *_test.cc is compiled into (cmake/StagModules.cmake)."""
    if path.parts[0] != 'src':
        made_of = {file: name for name, files in stag_tests((ROOT / path.parent / 'CMakeLists.txt').read_text()) for file in files.split()}
        return made_of.get(path.name, path.stem)
    folder = path.parent.relative_to('src').as_posix()
    module = next(m for m in all_modules if folder == m or folder.startswith(m + '/'))
    return module.replace('/', '_') + '_test'


def claims():
    """{id: {test name: Test}} of all tests in the sources."""
    sources = {f.relative_to(ROOT): f.read_text() for top in ('src', 'tests') for f in sorted((ROOT / top).rglob('*'))
               if f.suffix in ('.cc', '.h')}
    all_modules, found = modules(), {}
    for path, text in sources.items():
        if 'PROVES(' not in text:
            continue
        users = [path] if path.suffix == '.cc' else users_of(path, sources)
        programs = tuple(sorted({program_of(u, all_modules) for u in users}))
        for macro, suite, name, body in TEST.findall(text):
            pattern = {'TEST_P': f'*{suite}.{name}/*', 'TYPED_TEST': f'{suite}/*.{name}', 'TYPED_TEST_P': f'*{suite}/*.{name}'}
            test = Test(f'{suite}.{name}', pattern.get(macro, f'{suite}.{name}'), programs, digest(PROVES.sub('', body)))
            for claim in PROVES.findall(body):
                for i in re.findall(r'"([^"]+)"', claim):
                    found.setdefault(i, {})[test.name] = test
    return found


def users_of(header, sources):
    """The *_test.cc that include a header of tests/include, itself or the header that gathers its folder."""
    wanted = header.relative_to('tests/include').as_posix()
    including = [p for p, text in sources.items() if re.search(f'^#include "{re.escape(wanted)}"', text, re.M)]
    return [u for p in including for u in ([p] if p.suffix == '.cc' else users_of(p, sources)) if u.name.endswith('_test.cc')]


def id_of(patch):
    """R8166-4.5-b of R8166-4.5-b.patch and R8166-4.5-b.2.patch."""
    return re.match(r'(R\d{4}-[\d.]+-[a-z]+)', patch.name)[1]


def patches():
    """{id: [patch files]}."""
    found = {}
    for patch in sorted(MUTANTS.glob('*.patch')):
        found.setdefault(id_of(patch), []).append(patch)
    return found


def results():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def misfit(patch):
    """Why a patch does not apply to the sources as they are now; None when it does."""
    try:
        apply(patch, ROOT)
    except DoesNotApply as why:
        return str(why)
    return None


def standing(i, tests, files, last):
    """What keeps id `i` from being held, as sentences; none: it is held."""
    wrong, again = [], f'run `tools/mutants {i}`'
    for patch in files:
        result = last.get(patch.name)
        if why := misfit(patch):
            wrong.append(f'{patch.name} does not apply any more ({why}): make it again for the code as it is now and {again}')
        elif result is None or result['patch'] != change(patch):
            wrong.append(f'{patch.name} has not been run as it is now: {again}')
        elif not result['killed_by']:
            wrong.append(f'{patch.name} passes every test that claims {i}: strengthen one and {again}')
        elif not any(tests[t].digest == text for t, text in result['killed_by'].items() if t in tests):
            wrong.append(f'{i}: {", ".join(result["killed_by"])} has changed since it last failed for {patch.name}: {again}')
    gone = sorted(set(last) - {p.name for p in files})
    wrong += [f'{name} is gone and tests/mutants/results.json still has it: {again}' for name in gone]
    return wrong
