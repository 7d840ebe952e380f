// A client of version 4 to which a server delegates files (nfs4_client_world.h). It asks for them
// by the reverse direction of the client's connection, or by one that it makes to where a client of
// version 4.0 listens.
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "nfs/client/v4/callback_service.h"
#include "nfs/client/v4/callback_service_v40.h"
#include "testing/nfs/nfs4_client_world.h"

namespace stag::testing {

struct DelegatedWorld : Nfs4ClientWorld {
  static constexpr std::uint32_t kToRead = nfs::client::access::kRead;
  static constexpr std::uint32_t kToWrite = kToRead | nfs::client::access::kModify;

  explicit DelegatedWorld(std::uint32_t minor) : Nfs4ClientWorld(minor) {
    options.calls.delegations = true;
    listening.listens_at({"192.0.2.1", 20049});
  }
  virtual ~DelegatedWorld() = default;

  // A client, and a file of it.
  void begin() {
    using nfs::client::FileSystem;
    start_callbacks();
    protocol = must(
        nfs::client::nfs4::Nfs4::connect(channel, options.calls, {&service, &listening, nullptr}));
    const nfs::client::Handle top = must(protocol->root({"find the root", {}})).handle;
    FileSystem all(protocol, top, "/", options);
    files_.emplace(protocol, must(all.walk("data")).handle, "/data", options);
    const nfs::client::Node made = must(files().create(files().root(), "file", {.mode = 0644}));
    must(files().write(made.handle, 0, bytes_of("old")));
    file = made.handle;
  }
  void start_callbacks() {
    channel.server->nfs4.start_callbacks(loop, &to_listener);
    connect();
  }
  // A connection with a reverse direction.
  void connect() {
    reverse = back_channel();
    connection = std::make_shared<rpc::Connection>();
    channel.server->channel.origin().reverse = reverse;
    channel.server->channel.origin().connection = connection;
  }
  virtual std::shared_ptr<rpc::Channel> back_channel() {
    return std::make_shared<LoopbackChannel>(loop, service.service());
  }
  virtual std::unique_ptr<rpc::Channel> connection_of_version_4_0() {
    return std::make_unique<LoopbackChannel>(loop, listening.service());
  }
  nfs::client::FileSystem& files() { return *files_; }
  template <class T>
  T must(Task<nfs::client::Outcome<T>> task) {
    nfs::client::Outcome<T> outcome = run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    STAG_CHECK(outcome.ok());
    return std::move(*outcome);
  }
  void read_it() {
    const nfs::client::Opened open = must(files().open(file, kToRead));
    std::array<std::byte, 8> to;
    must(files().read(open.file, 0, to));
    must(files().close(open.file));
  }
  std::uint32_t delegations() {
    std::uint32_t all = 0;
    for (const auto& client : clients()) all += client.held.delegations;
    return all;
  }
  // Another client writes; yields what became of it.
  nfs::client::Outcome<nfs::client::WritePart> other_writes(std::string_view text) {
    nfs::client::FileSystemOptions plain = options;
    plain.calls.delegations = false;
    auto other = must(nfs::client::nfs4::Nfs4::connect(channel, plain.calls));
    nfs::client::FileSystem theirs(other, files().root(), "/data", plain);
    const nfs::client::Outcome<nfs::client::Opened> open = run(theirs.open(file, kToWrite));
    nfs::client::Outcome<nfs::client::WritePart> wrote =
        open ? run(theirs.write(open->file, 0, bytes_of(text))) : Failure{open.error()};
    if (open) must(theirs.close(open->file));
    run(ended(other));
    return wrote;
  }
  static Task<Ok> ended(std::shared_ptr<nfs::client::nfs4::Nfs4> protocol) {
    co_await protocol->close();
    co_return Ok{};
  }

  nfs::client::nfs4::CallbackService service;
  nfs::client::nfs4::CallbackServiceV40 listening;
  std::shared_ptr<rpc::Channel> reverse;
  std::shared_ptr<rpc::Connection> connection;
  nfs::client::Handle file;

 private:
  // What the server connects to clients of version 4.0 with.
  class ToListener final : public rpc::Connector {
   public:
    explicit ToListener(DelegatedWorld& world) : world_(world) {}
    Loop& loop() override { return world_.loop; }
    Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address,
                                                                        CancelToken) override {
      co_return world_.connection_of_version_4_0();
    }

   private:
    DelegatedWorld& world_;
  };

  ToListener to_listener{*this};
  std::optional<nfs::client::FileSystem> files_;
};

}  // namespace stag::testing
