"""Comments of the installed headers name only what is installed: headers, and qualified names that one of them declares."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / 'src'
listed = [line.strip() for line in (ROOT / 'cmake/public_headers.txt').read_text().splitlines()]
PUBLIC = {line for line in listed if line and not line.startswith('#')}
# The standard library's, of generated code, and an entry of an access control list as text.
FOREIGN = ('std::', 'item::', 'mask::')


def parts(header):
    """The comments and the code of a header."""
    text = (SOURCE / header).read_text()
    return '\n'.join(re.findall(r'//(.*)', text)), re.sub(r'//.*', '', text)


def headers_named(header, comments):
    for name in re.findall(r'[\w/]+\.h\b', comments):
        beside = str(pathlib.PurePath(header).parent / name)
        if name not in PUBLIC and beside not in PUBLIC and ((SOURCE / name).is_file() or (SOURCE / beside).is_file()):
            yield name


def names_not_declared(comments, declared):
    for name in re.findall(r'\b(?:\w+::)+~?\w+', comments):
        if not name.startswith(FOREIGN) and name.split('::')[-1] not in declared:
            yield name


texts = {header: parts(header) for header in sorted(PUBLIC)}
declared = set(re.findall(r'\w+', '\n'.join(code for _, code in texts.values())))
faults = [
    f'src/{header}: {name}' for header, (comments, _) in texts.items()
    for name in [*headers_named(header, comments), *names_not_declared(comments, declared)]
]
print(*faults, sep='\n')
sys.exit(f'{len(faults)} references to what is not installed' if faults else 0)
