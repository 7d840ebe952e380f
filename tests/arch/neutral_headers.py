"""Headers that stand for every version of NFS reach no structure of one (nfs/proto): not by what they include, and
not by a forward declaration, which needs no include."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2] / 'src'
# The API of the client, and what the server's protocols stand on.
NEUTRAL = ['nfs/client/*.h', 'nfs/client/session/*.h', 'nfs/client/protocol/*.h', 'nfs/blocking/*.h', 'nfs/export/*.h',
           'nfs/export/state/*.h']


def namespaces_of_proto():
    """Each .x file names its own in the first line."""
    files = sorted((SOURCE / 'nfs/proto').glob('*.x'))
    return [re.match(r'%// namespace: stag::nfs::(\w+)', path.read_text()).group(1) for path in files]


PROTO = '|'.join(namespaces_of_proto())
NAME_OF_PROTO = re.compile(rf'\b(?:{PROTO})::\w+|\bnamespace (?:\w+::)*(?:{PROTO})\b')


def faults_of(header, way, seen):
    """How `header`, and what it includes, reaches nfs/proto; each header is looked at once."""
    if header in seen or not (SOURCE / header).is_file() and not header.startswith('nfs/proto/'):
        return []
    seen.add(header)
    shown = ' -> '.join(way + (header,))
    if header.startswith('nfs/proto/'):
        return [shown]
    code = re.sub(r'//.*', '', (SOURCE / header).read_text())
    faults = [f'{shown}: {name}' for name in NAME_OF_PROTO.findall(code)]
    for included in re.findall(r'^#include "([^"]+)"', code, re.MULTILINE):
        faults += faults_of(included, way + (header,), seen)
    return faults


headers = [str(path.relative_to(SOURCE)) for pattern in NEUTRAL for path in SOURCE.glob(pattern)]
seen = set()
faults = [fault for header in headers for fault in faults_of(header, (), seen)]
print(*faults, sep='\n')
sys.exit(f'{len(faults)} ways to nfs/proto from {len(headers)} neutral headers' if faults or not headers else 0)
