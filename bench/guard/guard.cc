// stag_guard FABRIC OPERATION COUNT: a client and a server of NFS on RPC-over-RDMA in one process
// make COUNT calls of one kind, one after the other, on the simulated network, which stands for an
// adapter, on software iWARP over loopback, or on fabric/verbs over its stub. What it prints does
// not matter: bench/guard/run counts the instructions. "deep" is software iWARP with 32 calls in
// flight. "beside_nfs4" and "nfs4" are software iWARP and a server of version 4, too: with the
// operations of version 3, and with those of version 4.1.
// "client4" is version 4.2 by the client library, whose operations version 3 has in all others;
// "deep_client4" is the same with 32 calls in flight.
// "observed" is software iWARP with what `stag serve` counts and logs of its calls.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "bench/worlds/iwarp_world.h"
#include "bench/worlds/sim_world.h"
#include "cli/observe/observation.h"
#include "testing/verbs_world.h"

namespace {

using stag::bench::IwarpWorld;
using stag::bench::Operation;
using stag::bench::Versions;

std::optional<Operation> operation_called(std::string_view name) {
  if (name == "null") return Operation::Null;
  if (name == "getattr") return Operation::Getattr;
  if (name == "read_4k") return Operation::Read;
  if (name == "write_4k") return Operation::Write;
  return std::nullopt;
}

template <class World>
int run(Operation operation, int count, World&& world, unsigned depth = 1) {
  return world.run(operation, static_cast<std::uint64_t>(count), depth) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fabric = argc == 4 ? argv[1] : "";
  const auto operation = argc == 4 ? operation_called(argv[2]) : std::nullopt;
  const int count = argc == 4 ? std::atoi(argv[3]) : 0;
  if (operation && count > 0 && fabric == "sim")
    return run(*operation, count, stag::bench::SimWorld());
  if (operation && count > 0 && fabric == "iwarp") return run(*operation, count, IwarpWorld());
  if (operation && count > 0 && fabric == "deep") return run(*operation, count, IwarpWorld(), 32);
  if (operation && count > 0 && fabric == "beside_nfs4")
    return run(*operation, count, IwarpWorld(Versions::Nfs3BesideNfs4));
  if (operation && count > 0 && fabric == "nfs4")
    return run(*operation, count, IwarpWorld(Versions::Nfs4));
  if (operation && count > 0 && fabric == "client4")
    return run(*operation, count, IwarpWorld(Versions::Nfs42));
  if (operation && count > 0 && fabric == "deep_client4")
    return run(*operation, count, IwarpWorld(Versions::Nfs42), 32);
  if (operation && count > 0 && fabric == "observed") {
    stag::cli::Observation observation({}, std::chrono::steady_clock::now);
    return run(*operation, count, IwarpWorld(Versions::Nfs3, &observation));
  }
  if (operation && count > 0 && fabric == "verbs")
    return run(*operation, count, stag::testing::VerbsWorld());
  std::fputs(
      "usage: stag_guard sim|iwarp|deep|observed|beside_nfs4|nfs4|client4|deep_client4|verbs "
      "null|getattr|read_4k|write_4k COUNT\n",
      stderr);
  return 2;
}
