// All slots of the session are held by calls that do not end: whatever gives a slot to a call that
// waits for one wakes it.
#include <gtest/gtest.h>

#include <new>

#include "base/task_group.h"
#include "nfs/client/v4/callback_service.h"
#include "testing/nfs/lying_server.h"

namespace stag::nfs::client {
namespace {

using namespace std::chrono_literals;
using testing::Compound4Results;
using testing::LoopbackChannel;
using testing::LyingServer;

constexpr Duration kHangs = 1h;
constexpr int kSlots = 4;  // of a LyingServer

bool is_bind(const v4::COMPOUND4args& args) {
  return args.argarray[0].argop == v4::OP_BIND_CONN_TO_SESSION;
}

class Nfs41HeldSlots : public ::testing::Test {
 protected:
  Nfs41HeldSlots() {
    server.options.calls.timeout = server.options.calls.jukebox_for = 24h;
    server.takes = [this](const v4::COMPOUND4args& args) -> Duration {
      if (is_bind(args)) return 1s;
      return hanging > 0 && --hanging >= 0 ? kHangs : Duration(1ms);
    };
    server.lie = [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      if (args.argarray[0].argop != v4::OP_CREATE_SESSION) return;
      v4::CREATE_SESSION4resok& made = results.resarray[0].opcreate_session().csr_resok4();
      made.csr_sessionid.fill(std::byte{++sessions});
      made.csr_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
      made.csr_back_chan_attrs.ca_maxrequests = 16;
    };
    protocol = *server.run(client::nfs4::Nfs4::connect(server.channel, server.options.calls,
                                                       {&service, nullptr, nullptr}));
    files.emplace(protocol, *Handle::from(bytes_of(std::string_view("root"))), "/", server.options);
  }
  void TearDown() override {
    server.loop.pass(kHangs);
    server.lie = nullptr;
    const auto closed = [](client::nfs4::Nfs4& client) -> Task<Ok> {
      co_await client.close();
      co_return Ok{};
    };
    server.run(closed(*protocol));
  }
  // Lies once more, about what SEQUENCE of a getattr says.
  void lies_once(std::function<void(v4::SEQUENCE4res&, Compound4Results&)> lie) {
    server.lie = [lie, before = server.lie, told = false](const v4::COMPOUND4args& args,
                                                          Compound4Results& results) mutable {
      before(args, results);
      if (is_bind(args))
        results.resarray[0].opbind_conn_to_session().bctsr_resok4().bctsr_dir = v4::CDFS4_FORE;
      if (told || args.argarray[0].argop != v4::OP_SEQUENCE) return;
      told = true;
      lie(results.resarray[0].opsequence(), results);
    };
  }
  Task<void> look() {
    try {
      const Outcome<Attributes> got = co_await files->getattr(files->root());
      ++(got ? well : failed);
    } catch (const std::bad_alloc&) {
      ++failed;
    }
  }
  void look_at_once(int calls) {
    for (int i = 0; i < calls; ++i) group.add(look());
    server.loop.drain();
  }

  std::uint8_t sessions = 0;
  int hanging = 0;  // of the calls to come
  LyingServer server;
  client::nfs4::CallbackService service;
  std::shared_ptr<client::nfs4::Nfs4> protocol;
  std::optional<FileSystem> files;
  int well = 0, failed = 0;
  TaskGroup group;
};

// RFC 8881 20.8.3: also one that raises the number.
TEST_F(Nfs41HeldSlots, are_more_with_CB_RECALL_SLOT_and_a_call_that_waits_goes) {
  lies_once([](v4::SEQUENCE4res& sequence, Compound4Results&) {
    sequence.sr_resok4().sr_target_highest_slotid = 0;
  });
  look_at_once(1);
  server.loop.pass(10ms);
  ASSERT_EQ(well, 1);
  hanging = 1;
  look_at_once(2);
  server.loop.pass(1s);
  ASSERT_EQ(well, 1) << "there is one slot";
  v4::CB_COMPOUND4args args;
  args.minorversion = 1;
  args.argarray.emplace_back().argop = v4::OP_CB_SEQUENCE;
  args.argarray[0].opcbsequence() = {protocol->session_id(), 1, 0, 0, false, {}};
  args.argarray.emplace_back().argop = v4::OP_CB_RECALL_SLOT;
  args.argarray[1].opcbrecall_slot().rsa_target_highest_slotid = kSlots - 1;
  LoopbackChannel reverse(server.loop, service.service());
  rpc::Client caller(reverse, {}, rpc::Credentials::sys("server", 0, 0));
  const auto answer = server.loop.run(caller.call<v4::CB_COMPOUND>(args));
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((**answer).status, v4::NFS4_OK);
  server.loop.pass(10ms);
  EXPECT_EQ(well, 2);
}

TEST_F(Nfs41HeldSlots, that_a_call_leaves_for_want_of_memory_go_to_one_that_waits) {
  hanging = kSlots - 1;
  look_at_once(kSlots - 1);
  lies_once([this](v4::SEQUENCE4res& sequence, Compound4Results& results) {
    results.status = sequence.sr_status = v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
    results.resarray.resize(1);
    server.channel.no_memory_for_call = 1;
  });
  look_at_once(2);
  server.loop.pass(10ms);
  EXPECT_EQ(failed, 1) << "the one that was to bind the connection";
  EXPECT_EQ(well, 1);
}

TEST_F(Nfs41HeldSlots, are_waited_for_no_more_when_their_session_is_replaced_meanwhile) {
  hanging = kSlots - 1;
  look_at_once(kSlots - 1);
  lies_once([this](v4::SEQUENCE4res& sequence, Compound4Results&) {
    sequence.sr_resok4().sr_status_flags = v4::SEQ4_STATUS_CB_PATH_DOWN_SESSION;
    hanging = 1;
  });
  look_at_once(4);
  server.loop.pass(100ms);
  ASSERT_EQ(well, 1) << "another one hangs in its slot";
  server.loop.pass(1s);
  EXPECT_EQ(sessions, 2) << "the first one has no back channel any more";
  EXPECT_EQ(well, 3) << "all but the one that hangs in the slot";
}

}  // namespace
}  // namespace stag::nfs::client
