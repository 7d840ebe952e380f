"""Headers that stand for every version of NFS reach no structure of one (nfs/proto), not even by what they include."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2] / 'src'
# The API of the client, and what the server's protocols stand on.
NEUTRAL = ['nfs/client/*.h', 'nfs/client/session/*.h', 'nfs/client/protocol/protocol.h', 'nfs/export/*.h', 'nfs/export/state/*.h']


def way_to_proto(header, way=()):
    """The includes that lead from `header` to nfs/proto; empty when none do."""
    if header in way:
        return ()
    way += (header,)
    if header.startswith('nfs/proto/'):
        return way
    if not (SOURCE / header).is_file():
        return ()
    for included in re.findall(r'^#include "([^"]+)"', (SOURCE / header).read_text(), re.MULTILINE):
        found = way_to_proto(included, way)
        if found:
            return found
    return ()


headers = [str(path.relative_to(SOURCE)) for pattern in NEUTRAL for path in SOURCE.glob(pattern)]
ways = list(filter(None, map(way_to_proto, headers)))
for way in ways:
    print(' -> '.join(way))
sys.exit(f'{len(ways)} of {len(headers)} headers reach nfs/proto' if ways or not headers else 0)
