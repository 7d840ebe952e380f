// A server of version 4 that lies: every lie costs an error, and none a hang.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/task_group.h"
#include "nfs/client/v4/callback_service.h"
#include "testing/nfs/lying_server.h"

namespace stag::nfs::client {
namespace {

using testing::a_directory;
using testing::Compound4Results;
using testing::Lie;
using testing::LyingServer;

bool in_a_session(const v4::COMPOUND4args& args) {
  return args.argarray.front().argop == v4::OP_SEQUENCE;
}
void fail_at_once(Compound4Results& results, v4::nfsstat4 status) {
  results.status = status;
  results.resarray.resize(1);
}
Lie sequence_says(v4::nfsstat4 status) {
  return [status](const v4::COMPOUND4args& args, Compound4Results& results) {
    if (!in_a_session(args)) return;
    fail_at_once(results, status);
    results.resarray[0].opsequence().sr_status = status;
  };
}

class HostileNfs4Server : public ::testing::Test {
 protected:
  Error error_of_getattr(Lie lie) {
    FileSystem files = server.files();
    server.lie = std::move(lie);
    const auto got = server.run(files.getattr(files.root()));
    if (got) ADD_FAILURE() << "it was believed";
    return got ? Error{} : got.error();
  }
  LyingServer server;
};

TEST_F(HostileNfs4Server, that_answers_to_another_number_is_not_believed) {
  for (int which = 0; which < 3; ++which) {
    const Error error = error_of_getattr([which](const auto&, Compound4Results& results) {
      auto& resok = results.resarray[0].opsequence().sr_resok4();
      if (which == 0) ++resok.sr_sequenceid;
      if (which == 1) ++resok.sr_slotid;
      if (which == 2) resok.sr_sessionid.fill(std::byte{9});
    });
    EXPECT_EQ(error.kind, Error::Kind::Protocol) << error.sentence;
  }
}

TEST_F(HostileNfs4Server, that_loses_every_session_is_given_up) {
  for (const auto status : {v4::NFS4ERR_BADSESSION, v4::NFS4ERR_SEQ_MISORDERED,
                            v4::NFS4ERR_STALE_CLIENTID, v4::NFS4ERR_BADSLOT}) {
    const Error error = error_of_getattr(sequence_says(status));
    EXPECT_EQ(error.kind, Error::Kind::Protocol) << error.sentence;
    EXPECT_LT(server.calls, 1000);
  }
}

TEST_F(HostileNfs4Server, that_loses_every_session_for_a_while_is_waited_for) {
  for (const auto status : {v4::NFS4ERR_BADSESSION, v4::NFS4ERR_STALE_CLIENTID}) {
    FileSystem files = server.files();
    const TimePoint end = server.loop.now() + std::chrono::minutes(1);
    const Lie loses = sequence_says(status);
    server.lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
      if (server.loop.now() < end) loses(args, results);
    };
    server.calls = 0;
    const auto got = server.run(files.getattr(files.root()));
    EXPECT_TRUE(got.ok()) << got.error().sentence;
    EXPECT_LT(server.calls, 200) << "in a hurry";
  }
}

// Is out of step with the session that it made first, and notes which ones it is to destroy. It
// says DELAY to the first who asks, as for a call that is still in progress.
struct OutOfStep {
  Lie lie() {
    return [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      const v4::nfs_argop4& first = args.argarray[0];
      v4::nfs_resop4& result = results.resarray[0];
      if (first.argop == v4::OP_SEQUENCE && first.opsequence().sa_sessionid == v4::sessionid4{})
        return sequence_says(v4::NFS4ERR_SEQ_MISORDERED)(args, results);
      if (first.argop == v4::OP_CREATE_SESSION) {
        result.opcreate_session().csr_resok4().csr_sessionid.fill(std::byte{1});
        const bool full = keeps_one && destroyed.size() < 2;
        if (full) results.status = result.opcreate_session().csr_status = v4::NFS4ERR_NOSPC;
      }
      if (first.argop != v4::OP_DESTROY_SESSION) return;
      destroyed.push_back(first.opdestroy_session().dsa_sessionid);
      if (destroyed.size() == 1)
        results.status = result.opdestroy_session().dsr_status = v4::NFS4ERR_DELAY;
    };
  }
  bool keeps_one = false;  // and makes no other one meanwhile
  std::vector<v4::sessionid4> destroyed;
};

TEST_F(HostileNfs4Server, that_is_out_of_step_is_told_to_destroy_the_session) {
  FileSystem files = server.files();
  OutOfStep steps;
  server.lie = steps.lie();
  ASSERT_TRUE(server.run(files.getattr(files.root())).ok());
  EXPECT_TRUE(steps.destroyed.empty()) << "while its calls may be answered";
  server.loop.pass(std::chrono::minutes(5));
  EXPECT_EQ(steps.destroyed, std::vector<v4::sessionid4>(2)) << "until it is done";
}

TEST_F(HostileNfs4Server, that_has_no_room_for_a_session_gets_it_from_the_one_before) {
  FileSystem files = server.files();
  OutOfStep steps{.keeps_one = true, .destroyed = {}};
  server.lie = steps.lie();
  const auto got = server.run(files.getattr(files.root()));
  EXPECT_TRUE(got.ok()) << got.error().sentence;
}

TEST_F(HostileNfs4Server, that_takes_no_connection_for_that_of_a_session_is_left_with_it) {
  const auto protocol = server.connect();
  ASSERT_TRUE(protocol.ok());
  int asked = 0;
  server.lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
    if (args.argarray[0].argop != v4::OP_DESTROY_SESSION || ++asked > 100) return;
    results.status = v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
    results.resarray[0].opdestroy_session().dsr_status = results.status;
  };
  const auto closed = [](nfs4::Nfs4& client) -> Task<Ok> {
    co_await client.close();
    co_return Ok{};
  };
  server.run(closed(**protocol));
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, 10);
}

// RFC 8881 18.51.4: the server is not asked to complete it twice.
TEST_F(HostileNfs4Server, that_lost_the_results_of_RECLAIM_COMPLETE_is_gone_on_with) {
  server.lie = [](const v4::COMPOUND4args& args, Compound4Results& results) {
    if (args.argarray.size() > 1 && args.argarray[1].argop == v4::OP_RECLAIM_COMPLETE)
      sequence_says(v4::NFS4ERR_RETRY_UNCACHED_REP)(args, results);
  };
  const auto made = server.connect();
  EXPECT_TRUE(made.ok()) << made.error().sentence;
}

// One that is replaced may help; those that follow come no more often than the lease asks for.
TEST_F(HostileNfs4Server, that_calls_back_by_no_session_is_given_another_now_and_then) {
  int sessions = 0;
  server.options.calls.delegations = true;
  server.lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
    if (args.argarray[0].argop == v4::OP_CREATE_SESSION) {
      auto& made = results.resarray[0].opcreate_session().csr_resok4();
      made.csr_sessionid.fill(static_cast<std::byte>(++sessions));
      made.csr_flags = v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
      made.csr_back_chan_attrs = {0, 4096, 4096, 4096, 2, 1, {}};
    }
    if (in_a_session(args))
      results.resarray[0].opsequence().sr_resok4().sr_status_flags =
          v4::SEQ4_STATUS_BACKCHANNEL_FAULT;
  };
  nfs4::CallbackService callbacks;
  const auto protocol = server.run(
      nfs4::Nfs4::connect(server.channel, server.options.calls, {&callbacks, nullptr, nullptr}));
  ASSERT_TRUE(protocol.ok()) << protocol.error().sentence;
  FileSystem files(*protocol, *Handle::from(bytes_of("root")), "/", server.options);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(server.run(files.getattr(files.root())).ok());
  EXPECT_EQ(sessions, 2);
  server.lie = nullptr;
  const auto closed = [](nfs4::Nfs4& client) -> Task<Ok> {
    co_await client.close();
    co_return Ok{};
  };
  server.run(closed(**protocol));
}

TEST_F(HostileNfs4Server, that_makes_no_session_is_given_up) {
  server.lie = [](const v4::COMPOUND4args& args, Compound4Results& results) {
    if (args.argarray[0].argop != v4::OP_CREATE_SESSION) return;
    results.status = v4::NFS4ERR_STALE_CLIENTID;
    results.resarray[0].opcreate_session().csr_status = v4::NFS4ERR_STALE_CLIENTID;
  };
  const auto made = server.connect();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, Error::Kind::Protocol) << made.error().sentence;
}

TEST_F(HostileNfs4Server, that_is_busy_for_ever_is_waited_for_as_long_as_the_caller_says) {
  server.options.calls.jukebox_for = std::chrono::seconds(20);
  for (const bool in_sequence : {true, false}) {
    const Error error =
        error_of_getattr([&](const v4::COMPOUND4args& args, Compound4Results& results) {
          if (in_sequence) return sequence_says(v4::NFS4ERR_DELAY)(args, results);
          results.status = v4::NFS4ERR_DELAY;
          results.resarray.back().opgetattr().status = v4::NFS4ERR_DELAY;
        });
    EXPECT_TRUE(error.is(Status::Delay)) << error.sentence;
  }
  EXPECT_LT(server.calls, 200);
}

TEST_F(HostileNfs4Server, that_lost_the_results_is_asked_once_more_and_no_more) {
  const Error error = error_of_getattr(sequence_says(v4::NFS4ERR_RETRY_UNCACHED_REP));
  EXPECT_EQ(error.kind, Error::Kind::Protocol) << error.sentence;
}

TEST_F(HostileNfs4Server, that_sends_results_of_something_else_is_not_believed) {
  const Lie lies[] = {
      [](const auto&, Compound4Results& results) { results.resarray.clear(); },
      [](const auto&, Compound4Results& results) { results.resarray.pop_back(); },
      [](const auto&, Compound4Results& results) {
        results.resarray.push_back(results.resarray.back());
      },
      [](const auto&, Compound4Results& results) { results.resarray.back().resop = v4::OP_LOOKUP; },
      [](const auto&, Compound4Results& results) { results.resarray.front().resop = v4::OP_PUTFH; },
      // The operation failed, and the whole has not.
      [](const auto&, Compound4Results& results) {
        results.resarray.back().opgetattr().status = v4::NFS4ERR_IO;
      },
  };
  for (const Lie& lie : lies) {
    const Error error = error_of_getattr(lie);
    EXPECT_EQ(error.kind, Error::Kind::Protocol) << error.sentence;
  }
}

TEST_F(HostileNfs4Server, that_sends_attributes_nobody_can_read_is_not_believed) {
  const v4::fattr4 lies[] = {
      {},                                                            // no type
      {client::nfs4::bitmap_of({v4::FATTR4_TYPE}), {}},              // no value
      {client::nfs4::bitmap_of({v4::FATTR4_SEC_LABEL}), {}},         // not asked for
      {client::nfs4::bitmap_of({200}), {}},                          // unknown
      {client::nfs4::bitmap_of({v4::FATTR4_TYPE}),                   // no such type
       Rope::copy_of(bytes_of(std::string_view("\0\0\0\x63", 4)))},  //
      {client::nfs4::bitmap_of({v4::FATTR4_TYPE}),                   // more than one value
       Rope::copy_of(bytes_of(std::string_view("\0\0\0\1\0\0\0\1", 8)))},
  };
  for (const v4::fattr4& attributes : lies) {
    const Error error = error_of_getattr([&attributes](const auto&, Compound4Results& results) {
      results.resarray.back().opgetattr().resok4().obj_attributes = attributes;
    });
    EXPECT_EQ(error.kind, Error::Kind::Protocol) << error.sentence;
  }
}

// All that is asked for of a file, in words: type 1 (a file), mode and links 0x1234 and 2, owners
// "1234" and "56", and times of 1, 2 and 3 seconds and nanoseconds.
const std::vector<std::uint32_t> kFileValues = {
    1, 0,          10, 0, 20, 0,  30, 0, 40, 0, 50, 0x1234, 2, 4, 0x31323334,
    2, 0x35360000, 6,  7, 0,  60, 0,  1, 1,  0, 2,  2,      0, 3, 3};
v4::fattr4 a_file(const std::vector<std::uint32_t>& values) {
  std::vector<std::byte> bytes(values.size() * 4);
  for (std::size_t i = 0; i < values.size(); ++i) store_be(bytes.data() + 4 * i, values[i]);
  return {client::nfs4::node_attributes().bitmap, Rope::copy_of(bytes)};
}

TEST_F(HostileNfs4Server, whose_attributes_of_a_file_end_too_early_or_too_late_is_not_believed) {
  FileSystem files = server.files();
  const auto told = [&](const std::vector<std::uint32_t>& values) {
    server.lie = [&values](const auto&, Compound4Results& results) {
      results.resarray.back().opgetattr().resok4().obj_attributes = a_file(values);
    };
    return server.run(files.getattr(files.root()));
  };
  const Outcome<Attributes> whole = told(kFileValues);
  ASSERT_TRUE(whole.ok()) << whole.error().sentence;
  EXPECT_EQ(*whole, (Attributes{FileType::Regular,
                                0x234,
                                2,
                                1234,
                                56,
                                false,
                                false,
                                20,
                                60,
                                {6, 7},
                                30 ^ std::uint64_t{40} << 32,
                                50,
                                10,
                                {1, 1},
                                {3, 3},
                                {2, 2}}));
  std::vector<std::vector<std::uint32_t>> lies;
  for (std::size_t count = 0; count < kFileValues.size(); ++count)
    lies.emplace_back(kFileValues.begin(),
                      kFileValues.begin() + static_cast<std::ptrdiff_t>(count));
  lies.push_back(kFileValues);
  lies.back().push_back(0);
  const auto with = [&lies](std::size_t at, std::uint32_t value) {
    lies.push_back(kFileValues);
    lies.back()[at] = value;
  };
  with(0, 0), with(0, 8), with(13, ~0u), with(15, ~0u);
  for (const std::size_t nanoseconds : {23u, 26u, 29u}) with(nanoseconds, 1'000'000'000);
  for (const std::vector<std::uint32_t>& values : lies) {
    const Outcome<Attributes> got = told(values);
    ASSERT_FALSE(got.ok()) << values.size();
    EXPECT_EQ(got.error().kind, Error::Kind::Protocol) << got.error().sentence;
  }
}

TEST_F(HostileNfs4Server, that_answers_READ_or_WRITE_with_something_else_is_not_believed) {
  const Lie lies[] = {
      [](const auto&, Compound4Results& results) { results.resarray.pop_back(); },
      [](const auto&, Compound4Results& results) {
        results.resarray.push_back(results.resarray.back());
      },
      [](const auto&, Compound4Results& results) {
        const bool read = results.resarray.back().resop == v4::OP_READ;
        results.resarray.back().resop = read ? v4::OP_WRITE : v4::OP_READ;
      },
      // The operation failed, and the whole has not.
      [](const auto&, Compound4Results& results) {
        v4::nfs_resop4& last = results.resarray.back();
        (last.resop == v4::OP_READ ? last.opread().status : last.opwrite().status) = v4::NFS4ERR_IO;
      },
  };
  const auto expect_disbelief = [&](const auto& got, bool contradicts) {
    ASSERT_FALSE(got.ok());
    const std::string& sentence = got.error().sentence;
    EXPECT_EQ(got.error().kind, Error::Kind::Protocol) << sentence;
    EXPECT_EQ(sentence.find("contradict each other") != sentence.npos, contradicts) << sentence;
  };
  for (const Lie& lie : lies) {
    const bool contradicts = &lie == &lies[3];
    // Each of a session that no lie was told in.
    FileSystem reader = server.files();
    server.lie = lie;
    std::string to(4, '?');
    expect_disbelief(
        server.run(reader.read(reader.root(), 0, std::as_writable_bytes(std::span(to)))),
        contradicts);
    FileSystem writer = server.files();
    server.lie = lie;
    expect_disbelief(server.run(writer.write(writer.root(), 0, bytes_of("four"))), contradicts);
  }
}

TEST_F(HostileNfs4Server, that_sends_more_data_than_it_was_asked_for_is_not_believed) {
  FileSystem files = server.files();
  server.lie = [](const auto&, Compound4Results& results) {
    results.resarray.back().opread().resok4().data = Rope::copy_of(bytes_of("five!"));
  };
  std::string to(4, '?');
  const auto got = server.run(files.read(files.root(), 0, std::as_writable_bytes(std::span(to))));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().kind, Error::Kind::Protocol);
  EXPECT_EQ(to, "????");
}

class HostileNfs42Server : public ::testing::Test {
 protected:
  static v4::read_plus_content data(std::uint64_t offset, std::string_view text) {
    v4::read_plus_content segment;
    segment.rpc_content = v4::NFS4_CONTENT_DATA;
    segment.rpc_data() = {offset, Rope::copy_of(bytes_of(text))};
    return segment;
  }
  static v4::read_plus_content hole(std::uint64_t offset, std::uint64_t length) {
    v4::read_plus_content segment;
    segment.rpc_content = v4::NFS4_CONTENT_HOLE;
    segment.rpc_hole() = {offset, length};
    return segment;
  }
  // What READ_PLUS makes of these segments, asked for eight bytes from byte 100 on.
  Outcome<SparsePart> read(std::vector<v4::read_plus_content> segments) {
    to_.assign(8, '?');
    FileSystem files = server_.files();
    server_.lie = [&segments](const auto&, Compound4Results& results) {
      results.resarray.back().opread_plus().rp_resok4().rpr_contents = segments;
    };
    return server_.run(files.read_plus(files.root(), 100, std::as_writable_bytes(std::span(to_))));
  }
  LyingServer server_{2};
  std::string to_;
};

TEST_F(HostileNfs42Server, that_lists_more_extended_attributes_than_a_file_has_is_not_believed) {
  for (const bool ends : {false, true}) {
    for (const std::size_t names : {10u, 10'000u}) {
      FileSystem files = server_.files();
      server_.lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
        auto& page = results.resarray.back().oplistxattrs().lxr_value();
        page.lxr_names.assign(names, "ten bytes.");
        page.lxr_cookie = args.argarray.back().oplistxattrs().lxa_cookie + 1;
        page.lxr_eof = ends;
      };
      const auto listed = server_.run(files.list_xattrs(files.root()));
      EXPECT_EQ(listed.ok(), ends && names == 10);
      if (!listed) {
        EXPECT_EQ(listed.error().kind, Error::Kind::Protocol);
      }
    }
  }
}

TEST_F(HostileNfs42Server, that_sends_other_parts_of_a_file_than_asked_for_is_not_believed) {
  const std::vector<std::vector<v4::read_plus_content>> lies{{data(99, "before")},
                                                             {data(101, "behind")},
                                                             {data(100, "nine byte")},
                                                             {data(100, "ab"), hole(103, 2)},
                                                             {hole(101, 2)},
                                                             {hole(90, 5)},
                                                             {hole(100, 2), data(100, "ab")},
                                                             {hole(100, 2), hole(90, 40)}};
  for (const auto& lie : lies) {
    const auto got = read(lie);
    ASSERT_FALSE(got.ok()) << &lie - lies.data();
    EXPECT_EQ(got.error().kind, Error::Kind::Protocol);
  }
  v4::read_plus_content unknown;
  unknown.rpc_content = static_cast<v4::data_content4>(7);
  EXPECT_FALSE(read({unknown}).ok());
}

TEST_F(HostileNfs42Server, may_tell_more_of_a_hole_than_it_was_asked_for) {
  // RFC 7862 15.10.3: start and end may exceed what was requested; adjacent holes are legal.
  auto got = read({hole(0, ~std::uint64_t{0})});
  ASSERT_TRUE(got.ok()) << got.error().sentence;
  EXPECT_EQ(got->count, 8u);
  EXPECT_EQ(to_, std::string(8, '\0'));
  got = read({data(100, "ab"), hole(102, 1), hole(103, 0), hole(103, 2), data(105, "c")});
  ASSERT_TRUE(got.ok()) << got.error().sentence;
  EXPECT_EQ(got->count, 6u);
  EXPECT_EQ(to_, std::string("ab\0\0\0c??", 8));
  ASSERT_EQ(got->holes.size(), 1u);
  EXPECT_EQ(got->holes[0].length, 3u);
}

TEST_F(HostileNfs4Server, that_claims_to_have_written_nothing_or_too_much_is_not_believed) {
  FileSystem files = server.files();
  for (const std::uint32_t count : {0u, 5u, ~0u}) {
    server.lie = [count](const auto&, Compound4Results& results) {
      results.resarray.back().opwrite().resok4().count = count;
    };
    const auto wrote = server.run(files.write(files.root(), 0, bytes_of("four")));
    ASSERT_FALSE(wrote.ok());
    EXPECT_EQ(wrote.error().kind, Error::Kind::Protocol);
  }
}

TEST_F(HostileNfs4Server, whose_directory_has_no_end_is_left) {
  for (const bool rising : {false, true}) {
    FileSystem files = server.files();
    std::uint64_t cookie = 10;
    server.lie = [&](const auto&, Compound4Results& results) {
      auto& list = results.resarray.back().opreaddir().resok4().reply.entries;
      list.resize(1);
      list[0].name = "name";
      list[0].cookie = rising ? ++cookie : cookie;
    };
    Listing listing = files.list(files.root(), Listing::Detail::Names, 100);
    Outcome<std::vector<Entry>> batch = std::vector<Entry>{};
    int batches = 0;
    do batch = server.run(listing.next());
    while (batch && !batch->empty() && ++batches < 1000);
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().kind, Error::Kind::Protocol);
  }
}

TEST_F(HostileNfs4Server, that_wants_no_slot_or_all_of_them_used_is_obeyed_within_bounds) {
  FileSystem files = server.files();
  for (const std::uint32_t target : {0u, ~0u}) {
    server.lie = [target](const auto&, Compound4Results& results) {
      results.resarray[0].opsequence().sr_resok4().sr_target_highest_slotid = target;
    };
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(server.run(files.getattr(files.root())).ok());
  }
}

// RFC 8881 18.46.3: sr_target_highest_slotid rises at once for all that wait.
TEST_F(HostileNfs4Server, that_wants_more_slots_used_has_them_used_at_once) {
  FileSystem files = server.files();
  std::uint32_t target = 0;
  server.lie = [&target](const auto&, Compound4Results& results) {
    results.resarray[0].opsequence().sr_resok4().sr_target_highest_slotid = target;
  };
  ASSERT_TRUE(server.run(files.getattr(files.root())).ok());
  target = 3;
  const TimePoint start = server.loop.now();
  server.run([](FileSystem& by) -> Task<Ok> {
    TaskGroup group;
    for (int i = 0; i < 4; ++i)
      group.add([](FileSystem& one) -> Task<void> {
        const Outcome<Attributes> got = co_await one.getattr(one.root());
        EXPECT_TRUE(got.ok());
      }(by));
    co_await group.join();
    co_return Ok{};
  }(files));
  // One by the only slot, and then three side by side.
  EXPECT_EQ(server.loop.now() - start, std::chrono::milliseconds(2));
}

Task<void> count_answered(FileSystem& files, int& well) {
  const Outcome<Attributes> got = co_await files.getattr(files.root());
  well += got ? 1 : 0;
}

// A server may let the SEQUENCE of a slot in doubt wait for the call that was given up.
TEST_F(HostileNfs4Server, that_takes_long_over_a_call_that_was_given_up_holds_up_no_other_one) {
  FileSystem files = server.files();
  server.takes = [](const v4::COMPOUND4args& args) -> Duration {
    return std::chrono::seconds(args.argarray.size() == 1 ? 10 : 1);
  };
  server.channel.lost = true;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(server.run(files.getattr(files.root())).ok());
  server.channel.lost = false;
  TaskGroup group;
  int well = 0;
  for (int i = 0; i < 2; ++i) group.add(count_answered(files, well));
  server.loop.pass(std::chrono::milliseconds(2500));
  EXPECT_EQ(well, 2) << "one after the other, by the slot that is certain";
  server.loop.pass(std::chrono::seconds(10));
  for (int i = 0; i < 2; ++i) group.add(count_answered(files, well));
  server.loop.pass(std::chrono::milliseconds(1500));
  EXPECT_EQ(well, 4) << "side by side, by the one that was settled";
}

TEST_F(HostileNfs4Server,
       whose_slots_are_all_in_doubt_is_asked_about_one_for_each_call_that_waits) {
  FileSystem files = server.files();
  server.channel.lost = true;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(server.run(files.getattr(files.root())).ok());
  const Outcome<Attributes> silent = server.run(files.getattr(files.root()));
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().call.reason, Reason::TimedOut) << "what the lone SEQUENCE came to";
  server.channel.lost = false;
  server.calls = 0;
  EXPECT_TRUE(server.run(files.getattr(files.root())).ok());
  EXPECT_EQ(server.calls, 2);
}

// The call that had it asked about has left meanwhile.
TEST_F(HostileNfs4Server, whose_first_slot_hangs_holds_up_no_call_that_another_slot_is_there_for) {
  FileSystem files = server.files();
  server.channel.lost = true;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(server.run(files.getattr(files.root())).ok());
  server.channel.lost = false;
  server.takes = [](const v4::COMPOUND4args& args) -> Duration {
    const v4::nfs_argop4& first = args.argarray[0];
    const bool hangs = args.argarray.size() == 1 && first.opsequence().sa_slotid == 0;
    return hangs ? Duration(std::chrono::hours(1)) : std::chrono::seconds(1);
  };
  CancelSource cancel;
  FileSystemOptions with = server.options;
  with.calls.cancel = cancel;
  FileSystem left = files.with(with);
  TaskGroup group;
  int well = 0;
  group.add(count_answered(left, well));
  server.loop.pass(std::chrono::seconds(1));
  cancel.cancel();
  server.loop.pass(std::chrono::seconds(1));
  group.add(count_answered(files, well));
  server.loop.pass(std::chrono::seconds(3));
  EXPECT_EQ(well, 1) << "SEQUENCE by the second slot, and the call";
  server.loop.pass(std::chrono::hours(1));
}

TEST_F(HostileNfs4Server, that_says_DELAY_of_a_slot_in_doubt_is_asked_about_a_second_one) {
  FileSystem files = server.files();
  server.channel.lost = true;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(server.run(files.getattr(files.root())).ok());
  server.channel.lost = false;
  const TimePoint end = server.loop.now() + std::chrono::minutes(1);
  const Lie delays = sequence_says(v4::NFS4ERR_DELAY);
  server.lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
    const bool lone = args.argarray.size() == 1 && in_a_session(args);
    if (lone && args.argarray[0].opsequence().sa_slotid == 0 && server.loop.now() < end)
      delays(args, results);
  };
  TaskGroup group;
  int well = 0;
  group.add(count_answered(files, well));
  server.loop.pass(std::chrono::milliseconds(100));
  EXPECT_EQ(well, 1);
  server.loop.pass(std::chrono::minutes(2));
}

TEST_F(HostileNfs4Server, that_says_DELAY_of_all_slots_in_doubt_is_waited_for_no_longer_than_told) {
  server.options.calls.jukebox_for = std::chrono::seconds(20);
  FileSystem files = server.files();
  server.channel.lost = true;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(server.run(files.getattr(files.root())).ok());
  server.channel.lost = false;
  server.lie = sequence_says(v4::NFS4ERR_DELAY);
  const TimePoint before = server.loop.now();
  const Outcome<Attributes> got = server.run(files.getattr(files.root()));
  ASSERT_FALSE(got.ok());
  EXPECT_TRUE(got.error().is(Status::Delay)) << got.error().sentence;
  EXPECT_LT(server.loop.now() - before, std::chrono::minutes(2));
}

// Of version 4.0, where every OPEN succeeds and gives the file `handle`.
class HostileNfs40Server : public ::testing::Test {
 protected:
  HostileNfs40Server() {
    protocol = *server.connect();
    files.emplace(protocol, *Handle::from(bytes_of("root")), "/", server.options);
    server.lie = [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      for (std::size_t i = 0; i < args.argarray.size(); ++i)
        answer(args.argarray[i], results.resarray[i]);
      if (lie) lie(args, results);
    };
  }
  void TearDown() override {
    const auto closed = [](nfs4::Nfs4& client) -> Task<Ok> {
      co_await client.close();
      co_return Ok{};
    };
    lie = nullptr;
    server.run(closed(*protocol));
  }
  void answer(const v4::nfs_argop4& asked, v4::nfs_resop4& result) {
    ++times[asked.argop];
    if (asked.argop == v4::OP_OPEN) {
      owners.push_back(asked.opopen().owner.owner);
      result.opopen().resok4().stateid.seqid = 1;
      if (delegates) {
        auto& given = result.opopen().resok4().delegation;
        given.delegation_type = v4::OPEN_DELEGATE_READ;
        given.read().stateid.seqid = 7;
      }
    }
    if (asked.argop == v4::OP_GETFH)
      result.opgetfh().resok4().object = v4::nfs_fh4(bytes_of(handle));
    if (asked.argop == v4::OP_GETATTR)
      result.opgetattr().resok4().obj_attributes = nfs4::type_is(FileType::Regular);
  }
  // READ says once that it does not know the open, which is made anew.
  void forgets_at_READ() {
    lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
      if (args.argarray.back().argop != v4::OP_READ || owners.size() > 1) return;
      results.status = v4::NFS4ERR_BAD_STATEID;
      results.resarray.back().opread().status = v4::NFS4ERR_BAD_STATEID;
    };
  }
  Outcome<Opened> made() {
    return server.run(
        files->create_open(files->root(), "file", {}, CreateMode::Unchecked, access::kRead));
  }

  LyingServer server{0};
  std::shared_ptr<nfs4::Nfs4> protocol;
  std::optional<FileSystem> files;
  std::map<v4::nfs_opnum4, int> times;
  std::vector<Rope> owners;  // of OPENs
  std::string handle = "file";
  bool delegates = false;
  Lie lie;
};

TEST_F(HostileNfs40Server, that_forgets_the_client_after_every_claim_is_given_up) {
  ASSERT_TRUE(made().ok());
  const int before = server.calls;
  lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
    if (server.calls > before + 1000) return;
    for (std::size_t i = 0; i < args.argarray.size(); ++i) {
      if (args.argarray[i].argop != v4::OP_OPEN) continue;
      const auto& claim = args.argarray[i].opopen().claim;
      const bool reclaim = claim.claim == v4::CLAIM_PREVIOUS;
      if (!reclaim && claim.file() == "file") continue;
      results.status = reclaim ? v4::NFS4ERR_NO_GRACE : v4::NFS4ERR_STALE_CLIENTID;
      results.resarray.resize(i + 1);
      results.resarray[i].opopen().status = results.status;
    }
  };
  const auto other = server.run(
      files->create_open(files->root(), "other", {}, CreateMode::Unchecked, access::kRead));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, Error::Kind::Protocol) << other.error().sentence;
}

TEST_F(HostileNfs40Server, that_delegates_what_is_opened_again_gets_it_back) {
  const auto opened = made();
  ASSERT_TRUE(opened.ok());
  delegates = true;
  forgets_at_READ();
  std::array<std::byte, 4> to;
  EXPECT_TRUE(server.run(files->read(opened->file, 0, to)).ok());
  ASSERT_EQ(owners.size(), 2u);
  EXPECT_EQ(owners[0], owners[1]) << "it has no operation in progress";
  server.loop.drain();
  EXPECT_EQ(times[v4::OP_DELEGRETURN], 1) << "nobody asked for it";
}

TEST_F(HostileNfs40Server, that_delegates_another_file_than_was_meant_gets_it_back) {
  const auto opened = made();
  ASSERT_TRUE(opened.ok());
  handle = "other";
  delegates = true;
  const auto again = server.run(files->open(opened->file.handle, access::kRead));
  ASSERT_FALSE(again.ok());
  EXPECT_TRUE(again.error().is(Status::Stale));
  server.loop.drain();
  EXPECT_EQ(times[v4::OP_DELEGRETURN], 1);
  EXPECT_EQ(times[v4::OP_CLOSE], 1);
}

// The name leads to another file by now.
TEST_F(HostileNfs40Server, that_opens_another_file_again_than_was_meant_has_it_closed) {
  const auto opened = made();
  ASSERT_TRUE(opened.ok());
  handle = "other";
  forgets_at_READ();
  std::array<std::byte, 4> to;
  static_cast<void>(server.run(files->read(opened->file, 0, to)));
  ASSERT_EQ(owners.size(), 2u);
  server.loop.drain();
  EXPECT_EQ(times[v4::OP_CLOSE], 1);
}

// RFC 7530 9.1.7: by the number of another owner, as that of the one is taken.
TEST_F(HostileNfs40Server, that_works_at_a_LOCK_of_an_open_has_it_opened_again_by_another_owner) {
  const auto opened = made();
  ASSERT_TRUE(opened.ok());
  server.takes = [](const v4::COMPOUND4args& args) -> Duration {
    if (args.argarray.back().argop == v4::OP_LOCK) return std::chrono::minutes(1);
    return std::chrono::milliseconds(1);
  };
  TaskGroup locking;
  locking.add([](FileSystem& at, File file) -> Task<void> {
    static_cast<void>(co_await at.lock(file, {1, 1}, {0, 10, false}));
  }(*files, opened->file));
  forgets_at_READ();
  std::array<std::byte, 4> to;
  EXPECT_TRUE(server.run(files->read(opened->file, 0, to)).ok());
  ASSERT_EQ(owners.size(), 2u);
  EXPECT_NE(owners[0], owners[1]);
  server.loop.pass(std::chrono::minutes(2));
}

TEST_F(HostileNfs40Server, that_opens_a_file_without_attributes_has_it_closed) {
  delegates = true;
  lie = [](const v4::COMPOUND4args& args, Compound4Results& results) {
    for (std::size_t i = 0; i < args.argarray.size(); ++i)
      if (args.argarray[i].argop == v4::OP_GETATTR)
        results.resarray[i].opgetattr().resok4().obj_attributes = {};
  };
  const auto opened = made();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, Error::Kind::Protocol);
  server.loop.drain();
  EXPECT_EQ(times[v4::OP_DELEGRETURN], 1);
  EXPECT_EQ(times[v4::OP_CLOSE], 1);
}

// A disk that fails, at a server that means well.
TEST_F(HostileNfs40Server, that_opens_a_file_whose_attributes_it_cannot_read_has_it_closed) {
  delegates = true;
  lie = [](const v4::COMPOUND4args& args, Compound4Results& results) {
    for (std::size_t i = 0; i < args.argarray.size(); ++i) {
      if (args.argarray[i].argop != v4::OP_GETATTR) continue;
      results.status = results.resarray[i].opgetattr().status = v4::NFS4ERR_IO;
      results.resarray.resize(i + 1);
      return;
    }
  };
  const auto opened = made();
  ASSERT_FALSE(opened.ok());
  EXPECT_TRUE(opened.error().is(Status::Io));
  server.loop.drain();
  EXPECT_EQ(times[v4::OP_DELEGRETURN], 1);
  EXPECT_EQ(times[v4::OP_CLOSE], 1);
}

}  // namespace
}  // namespace stag::nfs::client
