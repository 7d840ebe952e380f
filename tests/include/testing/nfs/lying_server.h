// A server of NFS version 4 that answers everything with success, and lies as it is told.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "nfs/client/file_system.h"
#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/nfs4.h"
#include "rpc/server.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"

namespace stag::testing {

namespace v4 = nfs::v4;
namespace client = nfs::client;

using Compound4Results = v4::COMPOUND4res;
using Lie = std::function<void(const v4::COMPOUND4args&, Compound4Results&)>;

inline v4::fattr4 a_directory() {
  return client::nfs4::type_is(client::FileType::Directory);
}

// Success for everything, and what a session needs.
inline void answer_well(const v4::nfs_argop4& asked, v4::nfs_resop4& result) {
  result.resop = asked.argop;
  switch (asked.argop) {
    case v4::OP_CREATE_SESSION: {
      auto& made = result.opcreate_session().csr_resok4();
      made.csr_fore_chan_attrs = {0, 1 << 20, 1 << 20, 4096, 16, 4, {}};
      break;
    }
    case v4::OP_SEQUENCE: {
      auto& resok = result.opsequence().sr_resok4();
      resok.sr_sessionid = asked.opsequence().sa_sessionid;
      resok.sr_sequenceid = asked.opsequence().sa_sequenceid;
      resok.sr_slotid = asked.opsequence().sa_slotid;
      resok.sr_highest_slotid = resok.sr_target_highest_slotid = 3;
      break;
    }
    case v4::OP_GETATTR:
      result.opgetattr().resok4().obj_attributes = a_directory();
      break;
    default:
      break;
  }
}

struct LyingServer {
  explicit LyingServer(std::uint32_t minor = 1) {
    server.add<v4::NFSPROC4_COMPOUND>([this](rpc::CallContext& call, v4::COMPOUND4args args) {
      return answered(call, std::move(args));
    });
    options.calls.version = 4;
    options.calls.minor = minor;
  }
  Task<Compound4Results> answered(rpc::CallContext& call, v4::COMPOUND4args args) {
    ++calls;
    const Duration time = takes ? takes(args) : Duration(std::chrono::milliseconds(1));
    co_await sleep_for(call.loop(), time);
    Compound4Results results{};
    for (const v4::nfs_argop4& asked : args.argarray)
      answer_well(asked, results.resarray.emplace_back());
    if (lie) lie(args, results);
    co_return results;
  }
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result = loop.run(std::move(task));
    STAG_CHECK(result.has_value());
    return *std::move(result);
  }
  client::Outcome<std::shared_ptr<client::nfs4::Nfs4>> connect() {
    return run(client::nfs4::Nfs4::connect(channel, options.calls));
  }
  // Of files below a root that the server gave while it was honest.
  client::FileSystem files() {
    const Lie later = std::exchange(lie, nullptr);
    auto protocol = connect();
    if (!protocol) std::fprintf(stderr, "%s\n", protocol.error().sentence.c_str());
    STAG_CHECK(protocol.ok());
    lie = later;
    return client::FileSystem(*protocol, *client::Handle::from(bytes_of("root")), "/", options);
  }

  ManualLoop loop;
  rpc::Server server;
  LoopbackChannel channel{loop, server};
  client::FileSystemOptions options;
  Lie lie;
  std::function<Duration(const v4::COMPOUND4args&)> takes;  // empty: a millisecond
  int calls = 0;
};

}  // namespace stag::testing
