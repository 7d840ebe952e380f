"""sends.py CAPTURE: from which TCP port each Send went, to which, and how long it is, in bytes; of one that came in several segments, each with
what was before it. By tshark, whose FPDUs are paired with their messages here."""
import subprocess
import sys

SENDS = range(3, 7)  # Send, with Invalidate, with Solicited Event, with both (RFC 5040 4.1)
UNTAGGED = (1, 3, 4, 5, 6, 7)  # those, Read Request and Terminate
HEADER = 18  # bytes of DDP's and RDMAP's control fields, of the queue, the message and the offset (RFC 5041 4.3)

capture = sys.argv[1]
fields = ["tcp.srcport", "tcp.dstport", "iwarp_rdma.opcode", "iwarp_mpa.ulpdulength", "iwarp_ddp.qn", "iwarp_ddp.mo"]
command = ["tshark", "-r", capture, "-Y", "iwarp_rdma", "-T", "fields"]
for field in fields:
    command += ["-e", field]
for line in subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.splitlines():
    source, destination, *rest = line.split("\t")
    opcodes, lengths, queues, offsets = ([int(word, 0) for word in field.split(",") if word] for field in rest)
    queues, offsets = iter(queues), iter(offsets)  # of untagged messages only
    for opcode, length in zip(opcodes, lengths):
        if opcode in UNTAGGED:
            queue, offset = next(queues, None), next(offsets, None)
            # Where tshark loses the thread it takes data for headers; those are not of queue 0.
            if opcode in SENDS and queue == 0:
                print(source, destination, offset + length - HEADER)
