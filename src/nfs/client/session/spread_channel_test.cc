#include "nfs/client/session/spread_channel.h"

#include <numeric>

#include "nfs/client/session/session.h"
#include "nfs/client/v4/nfs4.h"
#include "nfs/export/exports.h"
#include "testing/claimed_kerberos.h"
#include "testing/nfs/client_harness.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/nfs/stray_sequence.h"
#include "testing/proves.h"

namespace stag::nfs::client {
namespace {

// What the connections of a Connector have in common.
struct Common {
  enum class Cut : std::uint8_t { Before, After };  // the server has executed the call

  int no_memory_for_call = 0;  // the how manieth of them all; 0: none
  int unclosed = 0;            // connections that nobody has closed
  int calls = 0;               // of them all
  int cut_at = 0;              // the how manieth call loses its connection; 0: none does
  Cut cut = Cut::Before;
};

// A connection that counts its calls, and may be down: those that are made then wait.
class CountedChannel final : public rpc::Channel {
 public:
  CountedChannel(Loop& loop, rpc::Service& service, std::uint32_t seed, Common& common)
      : Channel(seed), loop_(loop), common_(common) {
    lead_to(service);
  }
  ~CountedChannel() override { common_.unclosed += closed_ ? 0 : 1; }
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    ++calls;
    xids.push_back(message.xid);
    if (common_.no_memory_for_call != 0 && --common_.no_memory_for_call == 0)
      throw std::bad_alloc();
    if (std::exchange(no_memory, false)) throw std::bad_alloc();
    const bool cut = ++common_.calls == common_.cut_at;
    if (cut && common_.cut == Common::Cut::After)
      static_cast<void>(co_await channel_->call(message));
    if (cut) connect_anew();
    while (down && !closed_) {
      co_await sleep_for(loop(), std::chrono::seconds(1));
      if (message.deadline && loop().now() >= *message.deadline)
        co_return Failure{rpc::CallError::transport(Reason::TimedOut, where())};
      if (down_for != 0 && --down_for == 0) down = false;
    }
    co_return co_await channel_->call(message);
  }
  Task<void> close() override {
    closed_ = true;
    return channel_->close();
  }
  void serve_reverse(rpc::Service&) override { serves_reverse = true; }
  std::optional<rpc::ChannelLimits> limits() const override {
    if (down && !made_in_vain) return std::nullopt;
    return rpc::ChannelLimits{};
  }
  std::uint64_t connections_lost() const override { return lost; }
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }

  // The server knows this connection from no other one.
  void connect_anew() { channel_->origin().connection = std::make_shared<rpc::Connection>(); }

  void lead_to(rpc::Service& service) {
    channel_ = std::make_unique<testing::LoopbackChannel>(loop_, service);
    connect_anew();
  }

  int calls = 0;
  std::vector<std::uint32_t> xids;
  bool down = false;
  bool made_in_vain = false;  // while it is down: there is a connection, and it is closed at once
  int down_for = 0;           // so many seconds that a call waits; 0: without end
  bool serves_reverse = false;
  bool no_memory = false;  // for the next call
  std::uint64_t lost = 0;

 private:
  Loop& loop_;
  std::unique_ptr<testing::LoopbackChannel> channel_;
  Common& common_;
  bool closed_ = false;
};

// Each connection leads to the next of `services`, the last one to all further ones.
class Connections final : public rpc::Connector {
 public:
  Connections(Loop& loop, std::vector<rpc::Service*> services)
      : loop_(loop), services_(std::move(services)) {}
  Loop& loop() override { return loop_; }
  Task<Result<std::unique_ptr<rpc::Channel>, rpc::CallError>> connect(Address,
                                                                      CancelToken) override {
    const std::size_t at = std::min(channels.size(), services_.size() - 1);
    auto channel = std::make_unique<CountedChannel>(
        loop_, *services_[at], static_cast<std::uint32_t>(1000 * channels.size()), common);
    channels.push_back(channel.get());
    co_return std::unique_ptr<rpc::Channel>(std::move(channel));
  }
  std::vector<CountedChannel*> channels;
  Common common;

 private:
  Loop& loop_;
  std::vector<rpc::Service*> services_;
};

Task<Ok> spread_closed(Session& session) {
  co_await session.close();
  co_return Ok{};
}

// Whether there was memory for it.
Task<bool> opened_and_closed(Connectors connectors, Url url, FileSystemOptions options) {
  try {
    const auto session = co_await Session::open(connectors, std::move(url), options);
    EXPECT_TRUE(session.ok());
    if (session) co_await (*session)->close();
  } catch (const std::bad_alloc&) {
    co_return false;
  }
  co_return true;
}

// That the server knows.
std::size_t clients_of(testing::Nfs4Instance& served) {
  std::size_t all = 0;
  for (std::uint32_t i = 0; i < state::Clients::kShards; ++i)
    all += served.nfs4.administration().clients(i, served.channel.loop().now()).size();
  return all;
}

struct SpreadSession : ClientTest {
  std::unique_ptr<Session> opened(Connections& nfs, const std::string& url,
                                  std::span<rpc::Connector* const> others = {}) {
    const Connectors connectors{nfs, nfs, nullptr, others};
    auto session = run(Session::open(connectors, *Url::parse(url), options_));
    EXPECT_TRUE(session.ok()) << session.error().sentence;
    return session ? *std::move(session) : nullptr;
  }
  // Calls of so many operations, by each connection.
  std::vector<int> calls_of(Connections& nfs, Session& session, int operations) {
    std::vector<int> calls;
    for (CountedChannel* channel : nfs.channels) channel->calls = 0;
    for (int i = 0; i < operations; ++i) must(session.files().getattr(session.files().root()));
    for (CountedChannel* channel : nfs.channels) calls.push_back(channel->calls);
    return calls;
  }
};

// A little of everything, with results that a second execution would not have. The first thing that
// went wrong; empty: nothing.
class SpreadLife {
 public:
  SpreadLife(testing::ManualLoop& loop, FileSystem& files) : loop_(loop), files_(files) {}

  std::string live() {
    const Handle top = files_.root();
    constexpr std::uint32_t kBoth = access::kRead | access::kModify;
    const auto folder = done("mkdir", files_.mkdir(top, "folder", {}));
    const Handle in = folder ? folder->handle : top;
    const auto made =
        done("create", files_.create_open(in, "file", {.mode = 0640}, CreateMode::Guarded, kBoth));
    if (!made) return wrong_;
    done("lock", files_.lock(made->file, {1, 1}, {0, 10, true}));
    done("write", files_.write_from(made->file.handle, 0, bytes_of("content")));
    done("unlock", files_.unlock(made->file, {1, 1}, {0, 10, true}));
    done("close", files_.close(made->file));
    done("symlink", files_.symlink(in, "link", "file"));
    done("rename", files_.rename(in, "link", top, "moved"));
    done("remove", files_.remove(top, "moved"));
    std::array<std::byte, 8> to;
    const auto read = done("read", files_.read_into(made->file.handle, 0, to));
    if (read && text_of(Bytes(to).first(*read)) != "content") wrong_ += "other data";
    done("remove the file", files_.remove(in, "file"));
    done("rmdir", files_.rmdir(top, "folder"));
    return wrong_;
  }

 private:
  template <class T>
  std::optional<T> done(std::string_view what, Task<Outcome<T>> task) {
    Outcome<T> outcome = run_on(loop_, std::move(task));
    if (outcome) return *std::move(outcome);
    if (wrong_.empty()) wrong_ = std::string(what) + ": " + outcome.error().sentence;
    return std::nullopt;
  }

  testing::ManualLoop& loop_;
  FileSystem& files_;
  std::string wrong_;
};

using Calls = std::vector<int>;

TEST_F(SpreadSession, spreads_the_calls_of_version_3_over_the_connections) {
  Connections nfs(loop_, {&server_});
  const auto session = opened(nfs, "nfs://server/data?proto=tcp&connections=3&version=3");
  ASSERT_TRUE(session);
  EXPECT_EQ(calls_of(nfs, *session, 9), (Calls{3, 3, 3}));
  for (const CountedChannel* channel : nfs.channels)
    EXPECT_LT(channel->xids.back() - channel->xids.front(), 100u) << "XIDs of the connection";
  run(spread_closed(*session));
}

TEST_F(SpreadSession, goes_past_a_connection_that_is_down) {
  Connections nfs(loop_, {&server_});
  const auto session = opened(nfs, "nfs://server/data?proto=tcp&connections=3&version=3");
  ASSERT_TRUE(session);
  nfs.channels[1]->down = true;
  EXPECT_EQ(calls_of(nfs, *session, 6), (Calls{3, 1, 3})) << "and one call that has it made again";
  EXPECT_EQ(calls_of(nfs, *session, 6), (Calls{3, 0, 3}));
  run(spread_closed(*session));
}

// A Channel connects again for a call that waits, and for nothing else.
TEST_F(SpreadSession, uses_a_connection_again_that_was_lost_while_no_call_went_by_it) {
  Connections nfs(loop_, {&server_});
  const auto session = opened(nfs, "nfs://server/data?proto=tcp&connections=3&version=3");
  ASSERT_TRUE(session);
  for (int lost = 0; lost < 2; ++lost) {
    for (CountedChannel* channel : nfs.channels) channel->calls = 0;
    nfs.channels[1]->down = true;
    for (int i = 0; i < 3; ++i) must(session->files().getattr(session->files().root()));
    ASSERT_EQ(nfs.channels[1]->calls, 1) << "which waits";
    nfs.channels[1]->down = false;
    loop_.pass(std::chrono::seconds(1));
    EXPECT_EQ(calls_of(nfs, *session, 6), (Calls{2, 2, 2}));
  }
  run(spread_closed(*session));
}

TEST_F(SpreadSession, uses_a_connection_again_where_there_was_no_memory_to_have_it_made) {
  Connections nfs(loop_, {&server_});
  const auto session = opened(nfs, "nfs://server/data?proto=tcp&connections=3&version=3");
  ASSERT_TRUE(session);
  CountedChannel& lost = *nfs.channels[1];
  ++lost.lost;
  lost.no_memory = true;
  for (int i = 0; i < 3; ++i) must(session->files().getattr(session->files().root()));
  ASSERT_FALSE(lost.no_memory) << "for its NULL call";
  EXPECT_EQ(calls_of(nfs, *session, 6), (Calls{2, 2, 2}));
  run(spread_closed(*session));
}

TEST_F(SpreadSession, closes_its_connections_when_there_is_no_memory_for_it) {
  for (const char* options :
       {"version=3", "version=4.0", "connections=3", "connections=3&version=3"}) {
    testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
    rpc::Service& server =
        std::string_view(options).ends_with("version=3") ? server_ : served.server;
    const bool by_session = std::string_view(options) == "connections=3";
    bool enough = false;
    for (int call = 1; !enough && call < 100; ++call) {
      Connections nfs(loop_, {&server});
      nfs.common.no_memory_for_call = call;
      const Url url = *Url::parse(std::string("nfs://server/data?proto=tcp&") + options);
      enough =
          run(opened_and_closed({nfs, nfs}, url, options_)) && nfs.common.no_memory_for_call > 0;
      EXPECT_EQ(nfs.common.unclosed, 0) << options << ", call " << call;
      EXPECT_TRUE(!by_session || clients_of(served) == 0) << options << ", call " << call;
    }
    EXPECT_TRUE(enough) << options;
  }
}

// RFC 1813 3.3.8: their verifiers differ, though they count from the same number at the same time.
TEST_F(SpreadSession, creates_no_file_exclusively_that_another_mount_creates_at_the_same_time) {
  Connections nfs(loop_, {&server_});
  Connections others(loop_, {&server_});
  const std::string url = "nfs://server/data?proto=tcp&connections=2&version=3";
  const auto session = opened(nfs, url);
  const auto other = opened(others, url);
  ASSERT_TRUE(session && other);
  const auto create_in = [](Session& mount) {
    return mount.files().create(mount.files().root(), "lock", {}, CreateMode::Exclusive);
  };
  must(create_in(*session));
  EXPECT_EQ(status(create_in(*other)), Status::Exists);
  run(spread_closed(*session));
  run(spread_closed(*other));
}

TEST_F(SpreadSession, counts_the_losses_of_all_its_connections) {
  Connections nfs(loop_, {&server_});
  const auto session = opened(nfs, "nfs://server/data?proto=tcp&connections=3&version=3");
  ASSERT_TRUE(session);
  nfs.channels[0]->lost = 2;
  nfs.channels[2]->lost = 5;
  EXPECT_EQ(session->files().channel().connections_lost(), 7u);
  run(spread_closed(*session));
}

// Some connections are worked for on other loops.
struct SpreadOverLoops : SpreadSession {
  std::unique_ptr<Session> opened_on_three(const std::string& url) {
    return opened(here_, url, others_);
  }
  // By `here_` and by each of the others.
  Calls calls() {
    Calls all;
    for (Connections* const each : {&here_, &one_, &two_}) {
      all.push_back(0);
      for (CountedChannel* const channel : each->channels)
        all.back() += std::exchange(channel->calls, 0);
    }
    return all;
  }
  void read_often(Session& session, const Node& file, std::size_t size) {
    std::string text(size, 0);
    for (int i = 0; i < 4; ++i) must(session.files().read(file.handle, 0, writable(text)));
  }

  Connections here_{loop_, {&server_}}, one_{loop_, {&server_}}, two_{loop_, {&server_}};
  const std::array<rpc::Connector*, 2> others_{&one_, &two_};
};

TEST_F(SpreadOverLoops, has_the_others_do_calls_with_bulk_and_its_own_the_rest) {
  const auto session = opened_on_three("nfs://server/data?proto=tcp&connections=3&version=3");
  ASSERT_TRUE(session);
  FileSystem& files = session->files();
  const Node file = must(files.create(files.root(), "file", {}, CreateMode::Unchecked));
  calls();
  for (int i = 0; i < 6; ++i) must(files.getattr(files.root()));
  EXPECT_EQ(calls(), (Calls{6, 0, 0}));
  read_often(*session, file, 64 << 10);
  EXPECT_EQ(calls(), (Calls{0, 2, 2}));
  read_often(*session, file, 1000);
  EXPECT_EQ(calls(), (Calls{4, 0, 0}));
  const std::string data(64 << 10, 'd');
  for (int i = 0; i < 2; ++i) must(files.write(file.handle, 0, bytes_of(data)));
  EXPECT_EQ(calls(), (Calls{0, 1, 1}));
  run(spread_closed(*session));
}

TEST_F(SpreadOverLoops, has_each_do_what_is_the_others_where_those_are_down) {
  const auto session = opened_on_three("nfs://server/data?proto=tcp&connections=3&version=3");
  ASSERT_TRUE(session);
  FileSystem& files = session->files();
  const Node file = must(files.create(files.root(), "file", {}, CreateMode::Unchecked));
  calls();
  one_.channels[0]->down = two_.channels[0]->down = true;
  read_often(*session, file, 64 << 10);
  EXPECT_EQ(calls(), (Calls{4, 1, 1})) << "and one call each that has them made again";
  one_.channels[0]->down = two_.channels[0]->down = false;
  here_.channels[0]->down = true;
  loop_.pass(std::chrono::seconds(1));
  for (int i = 0; i < 4; ++i) must(files.getattr(files.root()));
  EXPECT_EQ(calls(), (Calls{1, 2, 2}));
  run(spread_closed(*session));
}

TEST_F(SpreadOverLoops, is_called_back_by_connections_of_its_own_loop_alone) {
  testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
  Connections here(loop_, {&served.server}), one(loop_, {&served.server});
  const std::array<rpc::Connector*, 1> others{&one};
  options_.calls.delegations = true;
  const auto session =
      opened(here, "nfs://server/data?proto=tcp&connections=3&version=4.2", others);
  ASSERT_TRUE(session);
  ASSERT_EQ(one.channels.size(), 2u);
  EXPECT_TRUE(here.channels[0]->serves_reverse);
  for (const CountedChannel* const channel : one.channels) EXPECT_FALSE(channel->serves_reverse);
  run(spread_closed(*session));
}

// After a restart of the server those of other loops, which have the limits of their last call, may
// look connected when this loop's is not yet.
TEST_F(SpreadOverLoops, makes_a_session_anew_by_a_connection_that_it_is_called_back_by) {
  const auto store = std::make_shared<vfs::MemoryFileSystem>();
  testing::Nfs4Instance served(loop_, store), restarted(loop_, store);
  Connections here(loop_, {&served.server}), one(loop_, {&served.server});
  const std::array<rpc::Connector*, 1> others{&one};
  options_.calls.delegations = true;
  const auto session =
      opened(here, "nfs://server/data?proto=tcp&connections=2&version=4.2", others);
  ASSERT_TRUE(session);
  here.channels[0]->lead_to(restarted.server);
  one.channels[0]->lead_to(restarted.server);
  here.channels[0]->down = true;
  here.channels[0]->down_for = 1;
  one.channels[0]->calls = 0;
  must(session->files().getattr(session->files().root()));
  EXPECT_EQ(one.channels[0]->calls, 1)
      << "the call that finds out, and nothing that makes sessions";
  EXPECT_EQ(clients_of(restarted), 1u);
  run(spread_closed(*session));
}

// A context of Kerberos is used on one loop.
TEST_F(SpreadOverLoops, has_its_own_do_all_where_a_mechanism_protects_the_calls) {
  nfs::ExportOptions exported;
  exported.flavors = {oncrpc::AuthFlavor::KRB5};
  ASSERT_TRUE(nfs_.add_export("/protected", store_, exported).ok());
  server_.add(std::make_unique<testing::ClaimedKerberosAuthenticator>());
  options_.mount_credentials = options_.calls.credentials;
  options_.calls.credentials = testing::claimed_kerberos(oncrpc::AuthFlavor::KRB5, 0, 0);
  const auto session = opened_on_three("nfs://server/protected?proto=tcp&connections=3&version=3");
  EXPECT_EQ(here_.channels.size(), 3u);
  EXPECT_TRUE(one_.channels.empty() && two_.channels.empty());
  if (session) run(spread_closed(*session));
}

TEST_F(SpreadSession, has_connections_join_the_session_of_version_4) {
  testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
  Connections nfs(loop_, {&served.server});
  const auto session = opened(nfs, "nfs://server/data?connections=2");
  ASSERT_TRUE(session);
  EXPECT_EQ(calls_of(nfs, *session, 6), (Calls{3, 3}));
  run(spread_closed(*session));
}

// By two connections in turn; the one that is made anew is none that the session knows.
TEST_F(SpreadSession, executes_every_call_once_whichever_connection_is_cut_at_it) {
  for (const char* version : {"4.0", "4.1", "4.2"})
    for (const Common::Cut cut : {Common::Cut::Before, Common::Cut::After})
      for (int at = 1;; ++at) {
        testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
        Connections nfs(loop_, {&served.server});
        nfs.common.cut_at = at;
        nfs.common.cut = cut;
        const auto session =
            opened(nfs, std::string("nfs://server/data?connections=2&version=") + version);
        ASSERT_TRUE(session);
        ASSERT_EQ(session->connections(), 2u) << version << ", call " << at;
        const int before = nfs.channels[1]->calls;
        EXPECT_EQ(SpreadLife(loop_, session->files()).live(), "") << version << ", call " << at;
        EXPECT_GT(nfs.channels[1]->calls, before + 5) << version << ", call " << at;
        run(spread_closed(*session));
        EXPECT_TRUE(clients_of(served) == 0 || session->url().minor == 0u)
            << version << ", call " << at;
        if (nfs.common.calls < at) break;
      }
}

TEST_F(SpreadSession, spreads_the_calls_of_a_client_of_version_4_0) {
  testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
  Connections nfs(loop_, {&served.server});
  const auto session = opened(nfs, "nfs://server/data?connections=3&version=4.0");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->connections(), 3u);
  EXPECT_EQ(calls_of(nfs, *session, 9), (Calls{3, 3, 3}));
  EXPECT_EQ(clients_of(served), 1u);
  run(spread_closed(*session));
}

// It knows neither the session nor, by version 4.0, the client ID.
TEST_F(SpreadSession, does_not_use_a_connection_to_another_server) {
  for (const char* version : {"4.0", "4.2"}) {
    testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
    testing::Nfs4Instance other(loop_, std::make_shared<vfs::MemoryFileSystem>());
    Connections nfs(loop_, {&served.server, &other.server});
    const auto session =
        opened(nfs, std::string("nfs://server/data?connections=2&version=") + version);
    ASSERT_TRUE(session);
    EXPECT_EQ(session->connections(), 1u) << version;
    const int before = nfs.channels[0]->calls;
    must(session->files().getattr(session->files().root()));
    must(session->files().getattr(session->files().root()));
    EXPECT_EQ(nfs.channels[0]->calls, before + 2) << version;
    run(spread_closed(*session));
  }
}

// A server that turns it away, as one beyond a limit, does so when it has been made.
TEST_F(SpreadSession, gives_no_call_to_a_connection_that_is_made_again_in_vain) {
  for (const char* version : {"3", "4.0", "4.2"}) {
    testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
    const bool by_session = std::string_view(version) != "3";
    Connections nfs(loop_, {by_session ? &served.server : &server_});
    const auto session =
        opened(nfs, std::string("nfs://server/data?proto=tcp&connections=3&version=") + version);
    ASSERT_TRUE(session);
    CountedChannel& turned_away = *nfs.channels[1];
    turned_away.down = turned_away.made_in_vain = true;
    turned_away.down_for = 1000;
    turned_away.lost = 1;
    EXPECT_EQ(calls_of(nfs, *session, 8)[1], 1)
        << version << ": the NULL call that has it prove itself";
    turned_away.down = false;
    loop_.pass(std::chrono::seconds(1));
    EXPECT_EQ(calls_of(nfs, *session, 9), (Calls{3, 3, 3})) << version;
    run(spread_closed(*session));
  }
}

// Version 4 by a mechanism that protects the calls: with integrity the session is bound to each
// connection by the machine credential alone (RFC 8881 2.10.8.3).
struct SpreadByKerberos : SpreadSession {
  using enum oncrpc::AuthFlavor;

  static std::unique_ptr<testing::Nfs4Instance> served_by(testing::ManualLoop& loop) {
    auto served =
        std::make_unique<testing::Nfs4Instance>(loop, std::make_shared<vfs::MemoryFileSystem>());
    served->server.add(std::make_unique<testing::ClaimedKerberosAuthenticator>());
    nfs::Exports exports;
    const auto all = parse_export_options("no_root_squash,sec=krb5:krb5i:krb5p");
    STAG_CHECK(exports.add(1, {"/data", std::make_shared<vfs::MemoryFileSystem>(), *all}).ok());
    served->context.exports.replace(std::move(exports));
    return served;
  }
  std::unique_ptr<Session> opened_as(oncrpc::AuthFlavor flavor, Connections& nfs,
                                     const std::string& options) {
    options_.calls.credentials = testing::claimed_kerberos(flavor, 0, 0);
    return opened(nfs, "nfs://server/data?" + options);
  }
};

TEST_F(SpreadByKerberos, executes_every_call_once_whichever_connection_is_cut_at_it) {
  for (const oncrpc::AuthFlavor flavor : {KRB5, KRB5I})
    for (const char* version : {"4.0", "4.2"})
      for (const Common::Cut cut : {Common::Cut::Before, Common::Cut::After})
        for (int at = 1;; ++at) {
          const auto served = served_by(loop_);
          Connections nfs(loop_, {&served->server});
          nfs.common.cut_at = at;
          nfs.common.cut = cut;
          const auto session =
              opened_as(flavor, nfs, std::string("connections=2&version=") + version);
          ASSERT_TRUE(session);
          ASSERT_EQ(session->connections(), 2u) << version << ", call " << at;
          EXPECT_EQ(SpreadLife(loop_, session->files()).live(), "") << version << ", call " << at;
          run(spread_closed(*session));
          EXPECT_TRUE(clients_of(*served) == 0 || session->url().minor == 0u)
              << version << ", call " << at;
          if (nfs.common.calls < at) break;
        }
}

TEST_F(SpreadByKerberos, binds_all_connections_once_when_they_were_made_anew) {
  const auto served = served_by(loop_);
  Connections nfs(loop_, {&served->server});
  const auto session = opened_as(KRB5I, nfs, "connections=4&version=4.1");
  ASSERT_TRUE(session);
  calls_of(nfs, *session, 4);
  for (CountedChannel* channel : nfs.channels) channel->connect_anew();
  const Calls calls = calls_of(nfs, *session, 8);
  EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), 0), 8 + 1 + 4)
      << "a call finds out, and each connection is bound";
  run(spread_closed(*session));
  EXPECT_EQ(clients_of(*served), 0u);
}

// One that is away holds up nobody; it is bound when a call by it finds that it has to be.
TEST_F(SpreadByKerberos, does_not_wait_for_a_connection_that_is_down) {
  const auto served = served_by(loop_);
  Connections nfs(loop_, {&served->server});
  const auto session = opened_as(KRB5I, nfs, "connections=3&version=4.2");
  ASSERT_TRUE(session);
  nfs.channels[1]->down = true;
  for (CountedChannel* channel : nfs.channels) channel->connect_anew();
  calls_of(nfs, *session, 6);
  nfs.channels[1]->down = false;
  loop_.pass(std::chrono::seconds(1));
  const int before = nfs.channels[1]->calls;
  calls_of(nfs, *session, 6);
  EXPECT_GE(nfs.channels[1]->calls, 2);
  EXPECT_GT(before, 0);
  run(spread_closed(*session));
  EXPECT_EQ(clients_of(*served), 0u);
}

// RFC 8881 18.37.3: by whichever connection the call goes, it is to be one that the session knows.
TEST_F(SpreadSession, destroys_its_session_by_connections_that_were_made_anew) {
  for (std::uint32_t connections = 1; connections <= kMostConnections; ++connections) {
    testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
    Connections nfs(loop_, {&served.server});
    const auto session =
        opened(nfs, "nfs://server/data?connections=" + std::to_string(connections));
    ASSERT_TRUE(session);
    ASSERT_EQ(nfs.channels.size(), connections);
    for (CountedChannel* channel : nfs.channels) channel->connect_anew();
    run(spread_closed(*session));
    EXPECT_EQ(clients_of(served), 0u) << connections;
  }
}

TEST_F(SpreadByKerberos, waits_for_no_connection_that_is_made_again_in_vain) {
  const auto served = served_by(loop_);
  Connections nfs(loop_, {&served->server});
  const auto session = opened_as(KRB5I, nfs, "connections=3&version=4.2");
  ASSERT_TRUE(session);
  CountedChannel& turned_away = *nfs.channels[1];
  turned_away.down = turned_away.made_in_vain = true;
  turned_away.down_for = 1000;
  turned_away.lost = 1;
  for (CountedChannel* channel : nfs.channels) channel->connect_anew();
  const TimePoint before = loop_.now();
  calls_of(nfs, *session, 8);
  EXPECT_LT(loop_.now() - before, std::chrono::seconds(10));
  turned_away.down = false;
  loop_.pass(std::chrono::seconds(1));
  run(spread_closed(*session));
  EXPECT_EQ(clients_of(*served), 0u);
}

Task<Ok> protocol_closed(nfs4::Nfs4& protocol, SpreadChannel& spread) {
  co_await protocol.close();
  co_await spread.close();
  co_return Ok{};
}

TEST_F(SpreadSession, destroys_a_session_that_was_left_by_connections_that_were_made_anew) {
  testing::Nfs4Instance served(loop_, std::make_shared<vfs::MemoryFileSystem>());
  testing::LoopbackChannel by_hand(loop_, served.server);
  Common common;
  SpreadChannel spread(2);
  std::vector<CountedChannel*> channels;
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto one = std::make_unique<CountedChannel>(loop_, served.server, i, common);
    channels.push_back(one.get());
    spread.add(std::move(one));
  }
  ProtocolOptions calls = options_.calls;
  calls.version = 4;
  calls.minor = 2;
  const std::shared_ptr<nfs4::Nfs4> protocol = must(nfs4::Nfs4::connect(spread, calls));
  ASSERT_TRUE(run_on(loop_, protocol->joins(*channels[0], *channels[1])));
  const v4::sessionid4 left = protocol->session_id();
  testing::put_out_of_step(loop_, by_hand, left);
  must(protocol->root({"find the root", {}}));
  ASSERT_NE(protocol->session_id(), left);
  for (CountedChannel* channel : channels) channel->connect_anew();
  EXPECT_NE(testing::stray_sequence(loop_, by_hand, left, 1), v4::NFS4ERR_BADSESSION);
  loop_.pass(protocol->lease() / 9);
  EXPECT_EQ(testing::stray_sequence(loop_, by_hand, left, 1), v4::NFS4ERR_BADSESSION)
      << "at the first try";
  run(protocol_closed(*protocol, spread));
  EXPECT_EQ(clients_of(served), 0u);
}

}  // namespace
}  // namespace stag::nfs::client
