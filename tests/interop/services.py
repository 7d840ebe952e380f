"""services.py RDMA-PORT TCP-PORT INFO.json: what rpcbind on the loopback has (rpcinfo) is what a `stag serve` at these ports registers,
no less and no more, and `rpcinfo -p`, `rpcinfo -l` and `stag info --json` (INFO.json) tell the same. Prints what differs and exits 1."""
import json
import subprocess
import sys

rdma_port, tcp_port = int(sys.argv[1]), int(sys.argv[2])
RPCBIND = 100000
RDMA, STREAM, DATAGRAM = ("rdma", "rdma6"), ("tcp", "tcp6"), ("udp", "udp6")
SERVED = [  # program, versions, netids
    (100003, (2, 3, 4), RDMA + STREAM),  # NFS, too large for datagrams
    (100227, (2, 3), RDMA + STREAM),  # NFSACL
    (100005, (1, 2, 3), STREAM + DATAGRAM),  # MOUNT, never over RDMA (RFC 8267 5.1)
    (100021, (1, 3, 4), STREAM + DATAGRAM),  # NLM
    (100024, (1,), STREAM + DATAGRAM),  # NSM
]


def port_of(universal):
    """The port at the end of a universal address (RFC 5665 5.2.3.3)."""
    high, low = universal.split(".")[-2:]
    return int(high) * 256 + int(low)


def rpcinfo(*words):
    """What it prints, line by line and word by word, without the heading."""
    lines = subprocess.run(["rpcinfo", *words], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    return [line.split() for line in lines]


def registered():
    rows = [row[:4] for row in rpcinfo("127.0.0.1")]
    return {(int(program), int(version), netid, port_of(address)) for program, version, netid, address in rows if int(program) != RPCBIND}


def ports():
    """By rpcbind version 2, which knows TCP and UDP of IPv4 only."""
    rows = [row[:4] for row in rpcinfo("-p", "127.0.0.1")]
    return {(int(program), int(version), netid, int(port)) for program, version, netid, port in rows if int(program) != RPCBIND}


def addresses(program, version):
    """RPCBPROC_GETADDRLIST: the netids of the address family in which it is asked."""
    found = set()
    for host, family in ("127.0.0.1", "inet"), ("::1", "inet6"):
        for number, of, transport, address, *_ in rpcinfo("-l", host, str(program), str(version)):
            named, name, _ = transport.split("/")
            found.add((int(number), int(of), name + {"inet": "", "inet6": "6"}[named] if named == family else transport, port_of(address)))
    return found


def told(path):
    """Of each program, netid and port the first and last version: a server that answers for itself says no more (RFC 5531 9)."""
    with open(path) as file:
        services = json.load(file)["services"]
    return {(s["program"], min(v), max(v), s["netid"], s["port"]) for s in services if s["program"] != RPCBIND
            for v in [[int(n) for n in s["versions"].replace("-", ",").split(",")]]}


def spans(rows):
    places = {(program, netid, port) for program, _, netid, port in rows}
    versions = {place: [row[1] for row in rows if (row[0], row[2], row[3]) == place] for place in places}
    return {(program, min(v), max(v), netid, port) for (program, netid, port), v in versions.items()}


def differ(what, left, right):
    for row in sorted(left - right):
        print(what[0], "only:", *row)
    for row in sorted(right - left):
        print(what[1], "only:", *row)
    return left != right


expected = {(program, version, netid, rdma_port if netid in RDMA else tcp_port)
            for program, versions, netids in SERVED for version in versions for netid in netids}
found = registered()
wrong = [differ(("rpcinfo", "expected"), found, expected), differ(("rpcinfo", "stag info"), spans(found), told(sys.argv[3])),
         differ(("rpcinfo -p", "expected"), ports(), {row for row in expected if row[2] in ("tcp", "udp")})]
# Of a program that is registered under a netid that /etc/netconfig lacks, such as rdma, rpcbind does not answer GETADDRLIST at all.
for program, versions, netids in SERVED:
    if not set(netids) & set(RDMA):
        for version in versions:
            wrong.append(differ(("rpcinfo -l", "expected"), addresses(program, version), {row for row in expected if row[:2] == (program, version)}))
sys.exit(any(wrong))
