// What the client's machine credential protects, and that the client works where it does (RFC 8881
// 2.10.8.3, 18.34, 18.35).
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "nfs/session/session.h"
#include "testing/claimed_kerberos.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::client {
namespace {

using testing::Accident;
using testing::claimed_kerberos;
using testing::ClaimedKerberosAuthenticator;
using testing::Nfs4ClientWorld;
using testing::Op;
using testing::op;

// A user whose ticket may run out.
class Ticket final : public rpc::ClientSecurity {
 public:
  explicit Ticket(std::uint32_t user)
      : claimed_(oncrpc::AuthFlavor::KRB5I, user, user, "user" + std::to_string(user)) {}
  bool transforms() const override { return claimed_.transforms(); }
  std::uint32_t reply_overhead() const override { return claimed_.reply_overhead(); }
  Task<Result<std::unique_ptr<rpc::CallSecurity>, rpc::CallError>> begin(
      rpc::Channel& channel, const oncrpc::CallHeader& header,
      const rpc::CallMessage& message) override {
    if (on_begin) on_begin();
    failures += expired ? 1 : 0;
    if (expired) co_return Failure{rpc::CallError::transport(why)};
    co_return co_await claimed_.begin(channel, header, message);
  }
  oncrpc::AuthFlavor flavor() const override { return claimed_.flavor(); }

  bool expired = false;
  Reason why = Reason::GssTicketExpired;
  int failures = 0;
  std::function<void()> on_begin{};

 private:
  testing::ClaimedKerberos claimed_;
};

class Nfs4StateProtection : public ::testing::Test, public Nfs4ClientWorld {
 protected:
  using enum oncrpc::AuthFlavor;

  Nfs4StateProtection() : Nfs4ClientWorld(1) {
    serve();
    as(KRB5I);
  }
  void serve() {
    channel.server->server.add(std::make_unique<ClaimedKerberosAuthenticator>());
    Exports exports;
    const auto all = parse_export_options("no_root_squash,sec=krb5:krb5i:krb5p");
    STAG_CHECK(exports.add(1, {"/data", store, *all}).ok());
    channel.server->context.exports.replace(std::move(exports));
    connect();
  }
  void TearDown() override {
    if (!protocol) return;
    run(closed());
    EXPECT_TRUE(clients().empty()) << "it can end what it has made";
  }
  void as(oncrpc::AuthFlavor flavor) { options.calls.credentials = claimed_kerberos(flavor, 0, 0); }
  void connect() {
    connection_ = std::make_shared<rpc::Connection>();
    channel.server->channel.origin().connection = connection_;
  }
  // What somebody else hears who wants to end the session.
  v4::nfsstat4 ended_by(const rpc::Credentials& other) {
    rpc::Client client(channel, ulb::nfs4(), other);
    v4::COMPOUND4args args{"", 1, {}};
    args.argarray.push_back(op(v4::OP_DESTROY_SESSION, &Op::opdestroy_session,
                               v4::DESTROY_SESSION4args{protocol->session_id()}));
    const auto result = loop.run(client.call<v4::NFSPROC4_COMPOUND>(args));
    STAG_CHECK(result && result->ok());
    return (*result)->status;
  }
  static rpc::Credentials another() { return claimed_kerberos(KRB5I, 0, 0, "another@EXAMPLE.ORG"); }
  bool makes(const char* name) {
    const auto made = run(files().create(files().root(), name, {.mode = 0644}));
    if (!made) ADD_FAILURE() << made.error().sentence;
    return made.ok();
  }

  Task<void> looked(int& count) {
    const auto found = co_await files().walk("file");
    if (found) ++count;
  }

 private:
  std::shared_ptr<rpc::Connection> connection_;
};

TEST_F(Nfs4StateProtection, nobody_else_ends_a_session_that_was_made_with_integrity) {
  ASSERT_TRUE(makes("file"));
  EXPECT_EQ(ended_by(another()), v4::NFS4ERR_WRONG_CRED);
  EXPECT_EQ(ended_by(rpc::Credentials::sys("tests", 0, 0)), v4::NFS4ERR_WRONG_CRED);
  EXPECT_TRUE(makes("another"));
}

TEST_F(Nfs4StateProtection, a_user_works_by_a_session_that_the_machine_has_made) {
  as(KRB5);
  options.calls.machine_credentials = claimed_kerberos(KRB5P, 65534, 65534, "host/a@EXAMPLE.ORG");
  ASSERT_TRUE(makes("file"));
  EXPECT_EQ(ended_by(options.calls.credentials), v4::NFS4ERR_WRONG_CRED);
}

TEST_F(Nfs4StateProtection, is_not_asked_for_without_integrity) {
  as(KRB5);
  ASSERT_TRUE(makes("file"));
  EXPECT_EQ(ended_by(another()), v4::NFS4_OK);
}

TEST_F(Nfs4StateProtection, a_connection_that_was_made_again_is_bound_to_the_same_session) {
  ASSERT_TRUE(makes("file"));
  const v4::sessionid4 before = protocol->session_id();
  connect();
  const int calls = channel.calls;
  ASSERT_TRUE(makes("another"));
  EXPECT_EQ(channel.calls - calls, 3) << "the call, BIND_CONN_TO_SESSION, the call";
  EXPECT_EQ(protocol->session_id(), before);
}

TEST_F(Nfs4StateProtection, does_not_repeat_what_was_done_before_the_connection_was_lost) {
  ASSERT_TRUE(makes("file"));
  const v4::sessionid4 before = protocol->session_id();
  channel.accident = Accident::CutAfter;
  channel.at = channel.calls + 1;
  channel.on_accident = [this] { connect(); };
  const auto removed = run(files().remove(files().root(), "file"));
  EXPECT_TRUE(removed.ok()) << removed.error().sentence;
  EXPECT_EQ(protocol->session_id(), before);
}

// A user with an open file, while another one's call finds that the server has restarted.
class Nfs4UserOfKerberos : public Nfs4StateProtection {
 protected:
  static constexpr std::uint32_t kUpdating = access::kRead | access::kModify;

  Nfs4UserOfKerberos() {
    SetAttributes all;
    all.mode = 0777;
    STAG_CHECK(run(files().setattr(files().root(), all)).ok());
    options.calls.credentials = rpc::Credentials::secured(ticket);
    theirs.emplace(files().with(options));
    auto made = run(theirs->create_open(files().root(), "file", {.mode = 0600}, CreateMode::Guarded,
                                        kUpdating));
    STAG_CHECK(made.ok());
    file = made->file;
  }
  void restart() {
    channel.restart();
    serve();
  }
  // At once; what is claimed then is claimed in the background.
  bool other_goes_on() {
    const TimePoint before = loop.now();
    const auto got = run(files().getattr(files().root()));
    if (!got) ADD_FAILURE() << got.error().sentence;
    EXPECT_EQ(loop.now(), before);
    loop.drain();
    return got.ok();
  }
  std::optional<Error> write_error() {
    const auto wrote = run(theirs->write(file, 0, bytes_of("text")));
    return wrote ? std::nullopt : std::optional(wrote.error());
  }

  std::shared_ptr<Ticket> ticket = std::make_shared<Ticket>(1000);
  Timer back;
  std::optional<FileSystem> theirs;
  File file;
};

TEST_F(Nfs4UserOfKerberos, has_an_open_file_opened_again_by_the_users_own_ticket) {
  restart();
  EXPECT_TRUE(other_goes_on());
  EXPECT_EQ(clients().front().held.opens, 1u);
  EXPECT_FALSE(write_error());
}

TEST_F(Nfs4UserOfKerberos, keeps_no_other_user_waiting_without_a_ticket_any_more) {
  restart();
  ticket->expired = true;
  EXPECT_TRUE(other_goes_on());
  ticket->expired = false;
  const auto error = write_error();
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->is(Status::StateLost));
}

TEST_F(Nfs4UserOfKerberos, whose_KDC_is_away_for_a_while_loses_nothing) {
  restart();
  ticket->expired = true;
  ticket->why = Reason::GssKdcUnreachable;
  back = loop.after(std::chrono::seconds(20), [&] { ticket->expired = false; });
  EXPECT_TRUE(other_goes_on());
  loop.pass(std::chrono::seconds(30));
  EXPECT_EQ(clients().front().held.opens, 1u);
  EXPECT_FALSE(write_error());
}

TEST_F(Nfs4UserOfKerberos, whose_KDC_is_away_for_a_lease_keeps_no_other_one_waiting) {
  restart();
  ticket->expired = true;
  ticket->why = Reason::GssKdcUnreachable;
  EXPECT_TRUE(other_goes_on());
  loop.pass(2 * protocol->lease());
  ticket->expired = false;
  const auto error = write_error();
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->is(Status::StateLost));
}

// Each of them would be asked for at the KDC: with many files others would come behind the grace
// period.
TEST_F(Nfs4UserOfKerberos, has_all_files_put_off_with_the_first_ones_while_the_KDC_is_away) {
  const auto open_by = [this](FileSystem& by, const std::string& name) {
    return run(by.create_open(files().root(), name, {.mode = 0600}, CreateMode::Guarded, kUpdating))
        .ok();
  };
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(open_by(*theirs, "file" + std::to_string(i)));
  const auto another = std::make_shared<Ticket>(1001);
  FileSystemOptions as_another = options;
  as_another.calls.credentials = rpc::Credentials::secured(another);
  FileSystem of_another = files().with(as_another);
  ASSERT_TRUE(open_by(of_another, "another"));
  restart();
  ticket->expired = true;
  ticket->why = Reason::GssKdcUnreachable;
  std::optional<int> failed_before;
  another->on_begin = [&] {
    if (!failed_before) failed_before = ticket->failures;
    ticket->expired = false;
  };
  EXPECT_TRUE(other_goes_on());
  EXPECT_EQ(failed_before, 1) << "the first one";
  another->on_begin = nullptr;
  EXPECT_FALSE(write_error());
}

// The session's own credentials find out what came of the LOCK; the user's are asked for when they
// are there.
TEST_F(Nfs4UserOfKerberos, keeps_no_lock_of_a_LOCK_given_up_while_the_KDC_is_away) {
  channel.accident = Accident::Lost;
  channel.at = channel.calls + 1;
  channel.on_accident = [this] { ticket->expired = true; };
  ticket->why = Reason::GssKdcUnreachable;
  EXPECT_FALSE(run(theirs->lock(file, {1, 1}, {0, 10, true})).ok());
  channel.accident = Accident::None;
  channel.on_accident = nullptr;
  loop.pass(std::chrono::seconds(60));
  EXPECT_EQ(clients().front().held.locks, 1u);
  ticket->expired = false;
  loop.pass(std::chrono::seconds(60));
  EXPECT_EQ(clients().front().held.locks, 0u);
}

TEST_F(Nfs4UserOfKerberos, loses_nothing_that_no_other_user_waits_for_without_a_ticket_any_more) {
  restart();
  ticket->expired = true;
  const auto error = write_error();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->call.reason, Reason::GssTicketExpired);
  ticket->expired = false;
  EXPECT_FALSE(write_error());
}

TEST_F(Nfs4StateProtection, calls_that_go_together_bind_the_connection_once) {
  ASSERT_TRUE(makes("file"));
  connect();
  TaskGroup all;
  int done = 0;
  const int calls = channel.calls;
  for (int i = 0; i < 4; ++i) all.add(looked(done));
  loop.drain();
  EXPECT_EQ(done, 4);
  EXPECT_LE(channel.calls - calls, 4 + 4 + 1);
}

}  // namespace
}  // namespace stag::nfs::client
