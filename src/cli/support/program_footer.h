// What `stag --help` says below its list of commands: URLs, sizes and exit codes.
#pragma once

namespace stag::cli {

constexpr const char* kProgramFooter =
    "\nURLs: nfs://HOST[:PORT]/EXPORT/PATH[?OPTION=VALUE&...]\n"
    "  proto=rdma|tcp    transport [rdma, port 20049; tcp: port 2049]\n"
    "  port=rpcbind      ask the server's rpcbind for the port of NFS, by netid\n"
    "  mountport=N       port of MOUNT [rpcbind's answer, else 2049; tcp: the port of NFS "
    "first]\n"
    "  rpcbindport=N     port of rpcbind [111]\n"
    "  uid=N, gid=N      who the server is told the user is, with sec=sys [the local user]\n"
    "  version=2|3|4|4.0|4.1|4.2  of NFS [the highest that both sides speak, 3 at least]\n"
    "  rsize=N, wsize=N (64K, 1M), fabric=iwarp|verbs|auto, sec=sys|krb5|krb5i|krb5p\n"
    "  connections=N     that calls are spread over [1]\n"
    "  callback=ADDR[:PORT]  version 4.0: where this machine listens for the server's callbacks\n"
    "  callback=tcp      versions 4.1 and 4.2: callbacks by TCP, to the port mountport [2049]\n"
    "\nSizes: N bytes, or NK, NM, NG (1024), NKB, NMB (1000), as 64K or 1.5GiB.\n"
    "\nExit code: 0 done; 1 failed, as standard error says; 2 wrong usage; 128 + N ended by "
    "signal\n"
    "N before it was done, 130 by Ctrl-C and 143 by SIGTERM ('stag serve' ends with 0).\n"
    "\n'stag COMMAND --help', or 'stag help COMMAND', describes one of them, with an example.";

}  // namespace stag::cli
