// Files (nfs/blocking) of a server on a loop of its own.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "endpoint/listener.h"
#include "nfs/blocking/files.h"
#include "nfs/v4/administration.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/server.h"
#include "vfs/memory/memory.h"

namespace stag::nfs::blocking {

// Serves /data by version 4 over TCP and over software iWARP.
struct BlockingFiles : ::testing::Test {
  BlockingFiles() {
    ExportOptions open;
    open.root_squash = false;
    Exports exports;
    STAG_CHECK(exports.add(1, {"/data", std::make_shared<vfs::MemoryFileSystem>(), open}).ok());
    context.exports.replace(std::move(exports));
    nfs4.add_program(server);
    options.files.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
  }

  Outcome<Files> opened(endpoint::Transport transport, const std::string& path = "/data",
                        const std::string& query = "version=4") {
    endpoint::ListenOptions listen;
    listen.transport = transport;
    auto made = endpoint::listen(server, {"127.0.0.1", 0}, listen);
    STAG_CHECK(made.ok());
    listener.emplace(*std::move(made));
    const std::string proto = transport == endpoint::Transport::Tcp ? "tcp" : "rdma";
    return Files::open(
        *client::Url::parse("nfs://127.0.0.1:" + std::to_string(listener->address().port) + path +
                            "?" + query + "&proto=" + proto),
        options);
  }
  // What the server keeps of its clients.
  std::vector<nfs4::ListedClient> clients() {
    std::vector<nfs4::ListedClient> all;
    for (std::uint32_t i = 0; i < state::Clients::kShards; ++i)
      for (auto& client : nfs4.administration().clients(i, std::chrono::steady_clock::now()))
        all.push_back(std::move(client));
    return all;
  }
  std::uint32_t delegations() {
    std::uint32_t all = 0;
    for (const auto& client : clients()) all += client.held.delegations;
    return all;
  }

  ServerContext context{ServerState::ephemeral(7)};
  nfs4::Nfs4Server nfs4{context, {}};
  rpc::Server server;
  std::optional<endpoint::Listener> listener;
  Options options;
};

}  // namespace stag::nfs::blocking
