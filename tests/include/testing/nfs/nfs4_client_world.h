// A FileSystem of NFS version 4 on our own server, in virtual time, over a Channel that does to a
// chosen call what a lost connection does: the call never arrives and is sent again, it is executed
// and then sent again, it is executed and nobody hears of it, it never arrives and nobody says so,
// at once or when its time is over (Silent); or the server restarts before it, or is slow to
// answer.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/pause.h"
#include "nfs/client/file_system.h"
#include "nfs/client/v4/nfs4.h"
#include "nfs/export/export_table.h"
#include "nfs/export/server_context.h"
#include "nfs/recovery/recovery.h"
#include "nfs/v4/administration.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/server.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "testing/vfs/posix_backend.h"
#include "vfs/memory/memory.h"

namespace stag::testing {

enum class Accident : std::uint8_t {
  None,
  CutBefore,
  CutAfter,
  Lost,
  Swallowed,
  Silent,
  Restart,
  Slow
};

// Serves `store` as /data, and a read-only store as /srv/fixed.
struct Nfs4Instance {
  Nfs4Instance(Loop& loop, std::shared_ptr<vfs::MemoryFileSystem> store,
               nfs::nfs4::Nfs4Options options = {})
      : nfs4(context, std::move(options)), channel(loop, server) {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/data", std::move(store), open}).ok());
    open.read_only = true;
    STAG_CHECK(exports.add(2, {"/srv/fixed", fixed, open}).ok());
    context.exports.replace(std::move(exports));
    nfs4.add_program(server);
  }

  std::shared_ptr<vfs::MemoryFileSystem> fixed = std::make_shared<vfs::MemoryFileSystem>();
  nfs::ServerContext context{nfs::ServerState::ephemeral(7)};
  nfs::nfs4::Nfs4Server nfs4;
  rpc::Server server;
  LoopbackChannel channel;
};

class AccidentChannel final : public rpc::Channel {
 public:
  AccidentChannel(Loop& loop, std::shared_ptr<vfs::MemoryFileSystem> store)
      : Channel(1), loop_(loop), store_(std::move(store)) {
    restart();
  }
  // Servers end before their records.
  ~AccidentChannel() override {
    server.reset();
    retired_.clear();
  }

  // A new instance of the server, which knows no client, but those that were recorded: they may
  // claim what they had.
  void restart() {
    if (server) retired_.push_back(std::move(server));
    nfs::nfs4::Nfs4Options options;
    grace = options.grace;
    options.lease_seconds = lease_seconds;
    if (records_) {
      auto opened = nfs::recovery::Recovery::open(records_->path() / "db", 90, nullptr);
      STAG_CHECK(opened.ok());
      recoveries_.push_back(*std::move(opened));
      options.recovery = recoveries_.back().get();
      options.recovery->begin_grace(*options.grace, loop_.now() + std::chrono::seconds(90));
    }
    server = std::make_unique<Nfs4Instance>(loop_, store_, options);
    server->channel.reduce = reduce;
  }
  // From the next call on.
  void fall_silent() {
    accident = Accident::Silent;
    at = calls + 1;
    times = 1'000'000;
  }
  // From the next start on.
  void keep_records() { records_.emplace("/tmp"); }

  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    const InProgress in_progress(*this);
    const bool now = ++calls >= at && calls < at + times;
    if (now && accident == Accident::Restart) restart();
    const bool lost = now && accident == Accident::Lost;
    if (lost || (now && accident == Accident::CutAfter))
      static_cast<void>(co_await server->channel.call(message));
    if (now && on_accident) on_accident();
    if (now && accident == Accident::Silent) {
      co_await pause(loop_, *message.deadline - loop_.now(), message.cancel);
      const bool cancelled = message.cancel.cancelled();
      co_return Failure{
          rpc::CallError::transport(cancelled ? Reason::Cancelled : Reason::TimedOut, where())};
    }
    if (lost || (now && accident == Accident::Swallowed))
      co_return Failure{rpc::CallError::transport(why, where())};
    const Duration delay =
        now && accident == Accident::Slow ? answer_after * (calls - at + 1) : Duration{};
    auto reply = co_await server->channel.call(message);
    if (delay != Duration{}) co_await sleep_for(loop_, delay);
    co_return reply;
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }

  std::unique_ptr<Nfs4Instance> server;
  std::shared_ptr<nfs::state::GracePeriod> grace;  // of this instance
  Accident accident = Accident::None;
  int at = 0;                         // the call that it happens to, from 1
  int times = 1;                      // the calls from there on
  Reason why = Reason::TimedOut;      // why a call is Lost or Swallowed
  std::function<void()> on_accident;  // before it is sent again
  Duration answer_after{};            // of the first slow call; twice as long of the second one
  int calls = 0;
  int in_progress = 0;
  int most_in_progress = 0;  // at once
  bool reduce = false;
  std::uint32_t lease_seconds = 90;  // from the next start on

 private:
  struct InProgress {
    explicit InProgress(AccidentChannel& channel) : of(channel) {
      of.most_in_progress = std::max(of.most_in_progress, ++of.in_progress);
    }
    ~InProgress() { --of.in_progress; }
    InProgress(const InProgress&) = delete;
    InProgress& operator=(const InProgress&) = delete;
    AccidentChannel& of;
  };

  Loop& loop_;
  std::shared_ptr<vfs::MemoryFileSystem> store_;
  std::optional<vfs::testing::Folder> records_;
  std::vector<std::unique_ptr<nfs::recovery::Recovery>> recoveries_;
  std::vector<std::unique_ptr<Nfs4Instance>> retired_;  // calls may still be in them
};

struct Nfs4ClientWorld {
  explicit Nfs4ClientWorld(std::optional<std::uint32_t> minor = std::nullopt) {
    options.calls.credentials = rpc::Credentials::sys("tests", 0, 0);
    options.calls.version = 4;
    options.calls.minor = minor;
  }

  template <class T>
  T run(Task<T> task) {
    std::optional<T> result = loop.run(std::move(task));
    STAG_CHECK(result.has_value());
    return *std::move(result);
  }
  // The files below /data.
  nfs::client::FileSystem& files() {
    if (!files_) {
      auto connected = run(nfs::client::nfs4::Nfs4::connect(channel, options.calls));
      if (!connected) std::fprintf(stderr, "%s\n", connected.error().sentence.c_str());
      STAG_CHECK(connected.ok());
      protocol = *connected;
      const auto root = run(protocol->root({"find the root", {}}));
      STAG_CHECK(root.ok());
      nfs::client::FileSystem all(protocol, root->handle, "/", options);
      const auto data = run(all.walk("data"));
      STAG_CHECK(data.ok());
      files_.emplace(protocol, data->handle, "/data", options);
    }
    return *files_;
  }
  // Calls of what is done.
  template <class F>
  int calls_of(F done) {
    loop.drain();
    const int before = channel.calls;
    done();
    return channel.calls - before;
  }
  // What the server keeps of its clients.
  std::vector<nfs::nfs4::ListedClient> clients() {
    std::vector<nfs::nfs4::ListedClient> all;
    for (std::uint32_t i = 0; i < nfs::state::Clients::kShards; ++i)
      for (auto& client : channel.server->nfs4.administration().clients(i, loop.now()))
        all.push_back(std::move(client));
    return all;
  }
  // What an administrator takes away: all states, or those of one type.
  void revoke(std::optional<nfs::state::StateInfo::Type> type) {
    nfs::state::StateCursor at;
    nfs::state::StatePage page;
    auto admin = channel.server->nfs4.administration();
    std::vector<nfs::state::Stateid> all;
    for (bool more = true; more;) {
      more = admin.states(at, {.client = {}, .type = type}, page);
      for (const auto& listed : page.rows()) all.push_back(listed.stateid);
    }
    STAG_CHECK(!all.empty());
    for (const nfs::state::Stateid& stateid : all) admin.revoke(stateid);
  }
  Task<Ok> closed() {
    co_await protocol->close();
    co_return Ok{};
  }

  ManualLoop loop;
  std::shared_ptr<vfs::MemoryFileSystem> store = std::make_shared<vfs::MemoryFileSystem>();
  AccidentChannel channel{loop, store};
  nfs::client::FileSystemOptions options;
  std::shared_ptr<nfs::client::nfs4::Nfs4> protocol;

 private:
  std::optional<nfs::client::FileSystem> files_;
};

}  // namespace stag::testing
