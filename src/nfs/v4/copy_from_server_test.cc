// COPY from another server (RFC 7862 4.5, 15.2): the source is one that the test tells what to do.
#include <functional>

#include "base/reason.h"
#include "nfs/v4/ops/offloads.h"
#include "nfs/v4/ops/patient_source.h"
#include "testing/claimed_kerberos.h"
#include "testing/nfs/nfs4_copies_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

std::uint64_t times_traced(Reason reason) {
  return reason_counters().of(reason);
}

class Nfs4CopyFromServer : public Nfs4CopiesServed {
 protected:
  // Of the last operation that was run.
  v4::COPY4res copy() {
    const Res results = run(copy_ops());
    EXPECT_EQ(results.resarray.size(), 4u) << results.status;
    if (results.resarray.size() != 4) return {results.status, {}};
    return results.resarray[3].opcopy();
  }
  v4::COPY4resok copied() {
    const v4::COPY4res results = copy();
    EXPECT_EQ(results.cr_status, v4::NFS4_OK);
    return results.cr_status == v4::NFS4_OK ? results.cr_resok4() : v4::COPY4resok{};
  }
  v4::COPY4resok copied_at_once() {
    args_.ca_synchronous = true;
    const v4::COPY4resok ok = copied();
    EXPECT_TRUE(ok.cr_requirements.cr_synchronous);
    EXPECT_TRUE(ok.cr_response.wr_callback_id.empty());
    return ok;
  }
  void set_up_copier(const std::string& name) {
    make_session(holder_args(exchange_id(name)));
    to_ = open(open_args("to", kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, false));
    args_.ca_dst_stateid = to_.stateid;
  }
  // What goes on, waiting for its second piece.
  v4::stateid4 begin() {
    sources_.gate = kPiece;
    const v4::COPY4resok ok = copied();
    EXPECT_FALSE(ok.cr_requirements.cr_synchronous);
    EXPECT_EQ(ok.cr_response.wr_callback_id.size(), 1u);
    return ok.cr_response.wr_callback_id.empty() ? v4::stateid4{}
                                                 : ok.cr_response.wr_callback_id[0];
  }
  // The export anew, with other options.
  void serve(const std::function<void(ExportOptions&)>& change) {
    ExportOptions options;
    options.root_squash = false;
    change(options);
    Exports exports;
    ASSERT_TRUE(exports.add(1, {"/data", store_, options}).ok());
    context_.exports.replace(std::move(exports));
  }
  void go_on() {
    sources_.gate = ~std::uint64_t{0};
    loop_.pass(1s);
  }
  v4::OFFLOAD_STATUS4res status(const v4::stateid4& stateid) {
    return run({putfh(to_.handle),
                op(v4::OP_OFFLOAD_STATUS, &Op::opoffload_status, v4::OFFLOAD_STATUS4args{stateid})})
        .resarray.back()
        .opoffload_status();
  }
  v4::nfsstat4 cancel(const v4::stateid4& stateid) {
    return run({putfh(to_.handle),
                op(v4::OP_OFFLOAD_CANCEL, &Op::opoffload_cancel, v4::OFFLOAD_CANCEL4args{stateid})})
        .status;
  }
  v4::CB_OFFLOAD4args told(std::size_t index) {
    return holder_client_.asked.at(index).argarray.at(1).opcboffload();
  }
  // Whether the file has `count` bytes, of the source's from `from` on.
  ::testing::AssertionResult has(std::uint64_t count, std::uint64_t from = 0) {
    constexpr std::uint32_t kRead = kPiece / 2;
    for (std::uint64_t at = 0; at <= count; at += kRead) {
      const Res results = run({putfh(to_.handle), read_op(to_.stateid, at, kRead)});
      if (results.status != v4::NFS4_OK) return ::testing::AssertionFailure() << results.status;
      const std::string data = text(results.resarray.back().opread().resok4().data);
      if (data.size() != std::min<std::uint64_t>(kRead, count - at))
        return ::testing::AssertionFailure() << data.size() << " bytes at " << at;
      for (std::size_t i = 0; i < data.size(); ++i)
        if (data[i] != content_at(from + at + i)) return ::testing::AssertionFailure() << at + i;
    }
    return ::testing::AssertionSuccess();
  }
};

TEST_F(Nfs4CopyFromServer, reads_what_the_client_names_as_the_clients_user) {
  credentials_ = rpc::Credentials::sys("tests", 17, 18, std::vector<std::uint32_t>{19});
  to_ = open(open_args("own", kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, true));
  args_.ca_dst_stateid = to_.stateid;
  const v4::COPY4resok ok = copied_at_once();
  EXPECT_EQ(ok.cr_response.wr_count, sources_.size);
  EXPECT_TRUE(has(sources_.size));
  EXPECT_EQ(sources_.places, std::vector<std::string>{"192.0.2.9:2049 tcp"});
  EXPECT_EQ(sources_.last.file, foreign_);
  EXPECT_EQ(sources_.last.stateid, stateid_);
  EXPECT_EQ(sources_.last.user.uid, 17u);
  EXPECT_EQ(sources_.last.user.gid, 18u);
  EXPECT_EQ(sources_.last.user.groups, vfs::Groups{19});
  EXPECT_EQ(sources_.closed, 1);
}

// Else root of an unknown machine would borrow the trust that the source has in this one's.
TEST_F(Nfs4CopyFromServer, reads_as_nobody_for_who_is_squashed) {
  Exports exports;
  ASSERT_TRUE(exports.add(1, {"/data", store_, ExportOptions()}).ok());
  context_.exports.replace(std::move(exports));
  copy();
  EXPECT_EQ(sources_.opened, 1);
  EXPECT_EQ(sources_.last.user.uid, 65534u);
  EXPECT_EQ(sources_.last.user.gid, 65534u);
}

TEST_F(Nfs4CopyFromServer, goes_on_after_the_answer_and_tells_the_end) {
  const v4::stateid4 stateid = begin();
  v4::OFFLOAD_STATUS4res now = status(stateid);
  ASSERT_EQ(now.osr_status, v4::NFS4_OK);
  EXPECT_EQ(now.osr_resok4().osr_count, kPiece);
  EXPECT_TRUE(now.osr_resok4().osr_complete.empty());
  EXPECT_TRUE(holder_client_.asked.empty());
  go_on();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  v4::CB_OFFLOAD4args end = told(0);
  EXPECT_EQ(end.coa_stateid, stateid);
  EXPECT_EQ(end.coa_fh, to_.handle);
  ASSERT_EQ(end.coa_offload_info.coa_status, v4::NFS4_OK);
  EXPECT_EQ(end.coa_offload_info.coa_resok4().wr_count, sources_.size);
  EXPECT_TRUE(has(sources_.size));
  EXPECT_EQ(sources_.closed, 1);
}

TEST_F(Nfs4CopyFromServer, is_done_before_the_answer_for_a_client_that_cannot_be_called) {
  set_up_session("a client without callbacks");
  to_ = open(open_args("to", kForBoth, false));
  args_.ca_dst_stateid = to_.stateid;
  const v4::COPY4resok ok = copied();
  EXPECT_TRUE(ok.cr_requirements.cr_synchronous);
  EXPECT_EQ(ok.cr_response.wr_count, sources_.size);
  EXPECT_TRUE(has(sources_.size));
}

TEST_F(Nfs4CopyFromServer, is_done_before_the_answer_for_a_client_without_a_back_channel) {
  v4::CREATE_SESSION4args args = holder_args(exchange_id("a client without a back channel"));
  args.csa_flags = 0;
  make_session(args);
  to_ = open(open_args("to", kForBoth, false));
  args_.ca_dst_stateid = to_.stateid;
  const v4::COPY4resok ok = copied();
  EXPECT_TRUE(ok.cr_requirements.cr_synchronous);
  EXPECT_EQ(ok.cr_response.wr_count, sources_.size);
}

TEST_F(Nfs4CopyFromServer, moves_so_much_before_an_answer_and_no_more) {
  sources_.size = kLargestAnswer + 1;
  EXPECT_EQ(copied_at_once().cr_response.wr_count, kLargestAnswer);
}

TEST_F(Nfs4CopyFromServer, does_not_keep_a_client_waiting_for_an_answer_for_long) {
  sources_.gate = 0;
  const Timer first = loop_.after(15s, [this] { sources_.gate = kPiece; });
  const Timer second = loop_.after(30s, [this] { sources_.gate = 2 * kPiece; });
  const TimePoint asked = loop_.now();
  EXPECT_EQ(copied_at_once().cr_response.wr_count, 2 * kPiece);
  EXPECT_LE(loop_.now() - asked, 31s);
}

TEST_F(Nfs4CopyFromServer, copies_a_range) {
  args_.ca_src_offset = 1000;
  args_.ca_count = 5000;
  EXPECT_EQ(copied_at_once().cr_response.wr_count, 5000u);
  EXPECT_TRUE(has(5000, 1000));
  ASSERT_EQ(sources_.asked.size(), 1u);
  EXPECT_EQ(sources_.asked[0], std::pair(std::uint64_t{1000}, std::uint64_t{5000}));
}

TEST_F(Nfs4CopyFromServer, connects_to_nobody_whom_the_operator_does_not_name) {
  const auto before = times_traced(Reason::Nfs4CopySourceRefused);
  args_.ca_source_server = {location("tcp", "192.0.2.8.8.1")};
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_EQ(times_traced(Reason::Nfs4CopySourceRefused), before + 1);
  v4::netloc4 name;
  name.nl_type = v4::NL4_NAME;
  name.nl_name() = kAdmitted;
  v4::netloc4 url;
  url.nl_type = v4::NL4_URL;
  url.nl_url() = "nfs://" + kAdmitted;
  for (const v4::netloc4& other :
       {name, url, location("udp", "192.0.2.9.8.1"), location("tcp", "192.0.2.9"),
        location("tcp", "192.0.2.9.0.0"), location("tcp", "")}) {
    args_.ca_source_server = {other};
    EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  }
  EXPECT_TRUE(sources_.places.empty());
}

TEST_F(Nfs4CopyFromServer, tries_the_addresses_of_a_source_in_turn) {
  sources_.refused_port = 2049;
  args_.ca_source_server.push_back(location("tcp", "192.0.2.8.8.1"));
  args_.ca_source_server.push_back(location("rdma", "192.0.2.9.78.81"));
  EXPECT_EQ(copied_at_once().cr_response.wr_count, sources_.size);
  EXPECT_EQ(sources_.places,
            (std::vector<std::string>{"192.0.2.9:2049 tcp", "192.0.2.9:20049 rdma"}));
}

TEST_F(Nfs4CopyFromServer, tries_few_of_many_addresses) {
  sources_.refused_port = 2049;
  args_.ca_source_server.resize(100, args_.ca_source_server[0]);
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_EQ(sources_.places.size(), 4u);
}

// By them the source would let this server read whatever its address may.
TEST_F(Nfs4CopyFromServer, reads_by_no_special_stateid) {
  v4::stateid4 bypass{~0u, {}};
  bypass.other.fill(std::byte{0xff});
  for (const v4::stateid4& special : {v4::stateid4{}, v4::stateid4{1, {}}, bypass}) {
    args_.ca_src_stateid = special;
    EXPECT_EQ(copy().cr_status, v4::NFS4ERR_BAD_STATEID);
  }
  EXPECT_TRUE(sources_.places.empty());
}

TEST_F(Nfs4CopyFromServer, is_not_done_with_auth_sys_for_a_user_of_kerberos) {
  server_.add(std::make_unique<ClaimedKerberosAuthenticator>());
  ExportOptions any;
  any.root_squash = false;
  any.flavors = {oncrpc::AuthFlavor::AUTH_SYS, oncrpc::AuthFlavor::KRB5P};
  Exports exports;
  ASSERT_TRUE(exports.add(1, {"/data", store_, any}).ok());
  context_.exports.replace(std::move(exports));
  credentials_ = claimed_kerberos(oncrpc::AuthFlavor::KRB5P, 0, 0, "root@EXAMPLE.COM");
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_TRUE(sources_.places.empty());
}

TEST_F(Nfs4CopyFromServer, wants_leave_to_write) {
  args_.ca_dst_stateid = stateid_;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_BAD_STATEID);
  args_.ca_dst_stateid = {};
  to_.handle = walk({"srv", "fixed"});
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_ROFS);
  EXPECT_TRUE(sources_.places.empty());
}

// RFC 7862 15.2.3.
TEST_F(Nfs4CopyFromServer, leaves_foreign_filehandles_to_the_copy_that_takes_them) {
  const auto status_of = [&](std::vector<Op> operations) { return run(operations).status; };
  const Op save = op(v4::OP_SAVEFH);
  const Op copies = op(v4::OP_COPY, &Op::opcopy, args_);
  EXPECT_EQ(status_of({putfh(foreign_)}), v4::NFS4ERR_BADHANDLE);
  EXPECT_EQ(status_of({putfh(foreign_), save}), v4::NFS4ERR_BADHANDLE);
  EXPECT_EQ(status_of({putfh(foreign_), save, putfh(to_.handle), save, copies}),
            v4::NFS4ERR_BADHANDLE);
  EXPECT_EQ(status_of({putfh(foreign_), getattr({1}), save, putfh(to_.handle), copies}),
            v4::NFS4ERR_BADHANDLE);
  EXPECT_EQ(status_of({putfh(foreign_), save, getattr({1}), putfh(to_.handle), copies}),
            v4::NFS4ERR_STALE);
  EXPECT_EQ(status_of({putfh(foreign_), save, getfh(), putfh(to_.handle), copies}),
            v4::NFS4ERR_STALE);
  EXPECT_EQ(status_of({putfh(foreign_), save, copies}), v4::NFS4ERR_STALE);
  v4::COPY4args within = args_;
  within.ca_source_server = {};
  EXPECT_EQ(status_of({putfh(foreign_), save, putfh(to_.handle),
                       op(v4::OP_COPY, &Op::opcopy, within), copies}),
            v4::NFS4ERR_STALE);
  EXPECT_EQ(status_of({putfh(foreign_), save, putrootfh(), lookup("data"),
                       op(v4::OP_LINK, &Op::oplink, {"linked"}), putfh(to_.handle), copies}),
            v4::NFS4ERR_STALE);
  EXPECT_EQ(status_of({putfh(to_.handle), getattr({1}), save, copies}), v4::NFS4ERR_STALE)
      << "the saved one is of this server";
  EXPECT_TRUE(sources_.places.empty());
}

TEST_F(Nfs4CopyFromServer, gives_a_source_up_that_does_not_answer) {
  const auto before = times_traced(Reason::Nfs4CopySourceFailed);
  sources_.hangs_in_open = true;
  const TimePoint asked = loop_.now();
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_EQ(loop_.now() - asked, kSourcePatience);
  EXPECT_EQ(times_traced(Reason::Nfs4CopySourceFailed), before + 1);
}

TEST_F(Nfs4CopyFromServer, gives_a_source_up_that_falls_silent) {
  const v4::stateid4 stateid = begin();
  loop_.pass(kSourcePatience - 1s);
  EXPECT_EQ(status(stateid).osr_status, v4::NFS4_OK);
  loop_.pass(2s);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  v4::CB_OFFLOAD4args end = told(0);
  EXPECT_EQ(end.coa_offload_info.coa_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_EQ(end.coa_offload_info.coa_bytes_copied(), kPiece);
}

TEST_F(Nfs4CopyFromServer, copies_from_one_source_while_another_one_is_silent) {
  begin();
  args_.ca_count = kPiece;
  EXPECT_EQ(copied_at_once().cr_response.wr_count, kPiece);
}

TEST_F(Nfs4CopyFromServer, does_not_wait_for_a_source_to_say_goodbye) {
  sources_.hangs_in_close = true;
  EXPECT_EQ(copied_at_once().cr_response.wr_count, sources_.size);
  loop_.pass(kSourcePatience + 1s);
}

TEST_F(Nfs4CopyFromServer, asks_for_no_more_than_the_file_had) {
  sources_.read = [](std::uint64_t, MutableBytes to) {
    return SourceFile::Part{static_cast<std::uint32_t>(to.size()), false};
  };
  EXPECT_EQ(copied_at_once().cr_response.wr_count, sources_.size);
  EXPECT_EQ(sources_.asked.back().second, sources_.size % kPiece);
}

TEST_F(Nfs4CopyFromServer, takes_no_more_than_it_asked_for) {
  sources_.read = [](std::uint64_t, MutableBytes to) {
    return SourceFile::Part{static_cast<std::uint32_t>(to.size() + 1), false};
  };
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_IO);
}

TEST_F(Nfs4CopyFromServer, does_not_ask_again_for_what_is_neither_data_nor_the_end) {
  sources_.read = [](std::uint64_t, MutableBytes) { return SourceFile::Part{0, false}; };
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_IO);
  EXPECT_LE(sources_.asked.size(), 3u);
}

TEST_F(Nfs4CopyFromServer, asks_for_what_follows_before_it_has_come) {
  sources_.size = 10 * kPiece;
  sources_.gate = 0;
  const Timer asking = loop_.after(1s, [this] {
    EXPECT_EQ(sources_.asked.size(), ReadAhead::kPieces);
    sources_.gate = ~std::uint64_t{0};
  });
  EXPECT_EQ(copied_at_once().cr_response.wr_count, sources_.size);
  EXPECT_EQ(sources_.asked.size(), 10u);
  EXPECT_TRUE(has(sources_.size));
}

TEST_F(Nfs4CopyFromServer, asks_for_no_more_at_a_time_than_the_source_gives) {
  sources_.size = 10 * kPiece;
  sources_.largest_read = kPiece / 4;
  sources_.read = [this](std::uint64_t offset, MutableBytes to) {
    return sources_.true_part(offset, to.first(std::min<std::size_t>(to.size(), kPiece / 4)));
  };
  EXPECT_EQ(copied_at_once().cr_response.wr_count, sources_.size);
  EXPECT_EQ(sources_.asked.size(), 40u);
  EXPECT_TRUE(has(sources_.size));
}

TEST_F(Nfs4CopyFromServer, goes_on_behind_what_was_shorter_than_asked_for) {
  sources_.read = [this](std::uint64_t offset, MutableBytes to) {
    return sources_.true_part(offset, to.first(std::min<std::size_t>(to.size(), 700'000)));
  };
  EXPECT_EQ(copied_at_once().cr_response.wr_count, sources_.size);
  EXPECT_TRUE(has(sources_.size));
}

TEST_F(Nfs4CopyFromServer, is_invalid_beyond_the_end_of_the_source) {
  args_.ca_count = sources_.size + 1;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_INVAL);
  args_.ca_count = 0;
  args_.ca_src_offset = sources_.size + 1;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_INVAL);
  args_.ca_src_offset = sources_.size;
  EXPECT_EQ(copied_at_once().cr_response.wr_count, 0u);
  EXPECT_TRUE(sources_.asked.empty());
}

TEST_F(Nfs4CopyFromServer, ends_where_the_source_was_cut_meanwhile) {
  sources_.read = [this](std::uint64_t offset, MutableBytes to) {
    sources_.size = kPiece;
    return sources_.true_part(offset, to);
  };
  EXPECT_EQ(copied_at_once().cr_response.wr_count, kPiece);
  EXPECT_TRUE(has(kPiece));
  sources_.size = 2 * kPiece;
  args_.ca_count = sources_.size;
  EXPECT_EQ(copied_at_once().cr_response.wr_count, kPiece);
  args_.ca_src_offset = kPiece;
  args_.ca_count = kPiece;
  sources_.size = 2 * kPiece;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_INVAL);
}

TEST_F(Nfs4CopyFromServer, tells_what_the_source_has_against_it) {
  sources_.refusal_of_size = v4::NFS4ERR_STALE;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_STALE);
  sources_.refusal_of_size = v4::NFS4_OK;
  sources_.read = [](std::uint64_t, MutableBytes) -> SourceFile::Answer<SourceFile::Part> {
    return Failure{v4::NFS4ERR_PARTNER_NO_AUTH};
  };
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_PARTNER_NO_AUTH);
  EXPECT_EQ(sources_.closed, 2);
}

TEST_F(Nfs4CopyFromServer, ends_when_the_source_takes_the_leave_back) {
  const v4::stateid4 stateid = begin();
  sources_.read = [](std::uint64_t, MutableBytes) -> SourceFile::Answer<SourceFile::Part> {
    return Failure{v4::NFS4ERR_PARTNER_NO_AUTH};
  };
  go_on();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  v4::CB_OFFLOAD4args end = told(0);
  EXPECT_EQ(end.coa_stateid, stateid);
  EXPECT_EQ(end.coa_offload_info.coa_status, v4::NFS4ERR_PARTNER_NO_AUTH);
  EXPECT_EQ(end.coa_offload_info.coa_bytes_copied(), kPiece);
}

TEST_F(Nfs4CopyFromServer, is_cancelled_at_once_though_the_source_is_silent) {
  const v4::stateid4 stateid = begin();
  const TimePoint asked = loop_.now();
  EXPECT_EQ(cancel(stateid), v4::NFS4_OK);
  EXPECT_EQ(loop_.now(), asked);
  EXPECT_EQ(cancel(stateid), v4::NFS4ERR_BAD_STATEID);
  go_on();
  EXPECT_TRUE(holder_client_.asked.empty());
  EXPECT_TRUE(has(kPiece)) << "nothing is written any more";
}

TEST_F(Nfs4CopyFromServer, ends_with_the_open_that_it_writes_by) {
  begin();
  EXPECT_EQ(close(to_), v4::NFS4_OK);
  sources_.gate = 2 * kPiece;
  loop_.pass(1s);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_BAD_STATEID);
  to_ = open(open_args("to", kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, false));
  EXPECT_TRUE(has(kPiece)) << "nothing is written any more";
}

TEST_F(Nfs4CopyFromServer, writes_nothing_that_came_when_its_export_was_read_only) {
  begin();
  serve([](ExportOptions& options) { options.read_only = true; });
  go_on();
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_ROFS);
  EXPECT_TRUE(has(kPiece)) << "nothing is written any more";
}

// The source would be read as a user that the caller is no more.
TEST_F(Nfs4CopyFromServer, ends_when_its_user_is_another_one_here) {
  sources_.size = 10 * kPiece;
  begin();
  const std::size_t asked = sources_.asked.size();
  serve([](ExportOptions& options) { options.root_squash = true; });
  go_on();
  EXPECT_EQ(sources_.asked.size(), asked);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(told(0).coa_offload_info.coa_status, v4::NFS4ERR_OFFLOAD_DENIED);
}

TEST_F(Nfs4CopyFromServer, is_asked_for_later_beyond_a_number_of_them) {
  for (std::uint32_t i = 0; i < Nfs4Options{}.copies_of_client; ++i) begin();
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_DELAY);
  args_.ca_synchronous = true;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_DELAY);
  go_on();
  EXPECT_EQ(copied_at_once().cr_response.wr_count, sources_.size);
}

// Each holds a connection to the source.
TEST_F(Nfs4CopyFromServer, counts_until_its_source_is_closed) {
  sources_.hangs_in_close = true;
  args_.ca_count = 1;
  for (std::uint32_t i = 0; i < Nfs4Options{}.copies_of_client; ++i) copied_at_once();
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(sources_.opened, static_cast<int>(Nfs4Options{}.copies_of_client));
  loop_.pass(kSourcePatience + 1s);
  EXPECT_EQ(copied_at_once().cr_response.wr_count, 1u);
}

// Strangers' copies may go on for hours, and the client can copy by itself.
TEST_F(Nfs4CopyFromServer, is_denied_where_those_of_others_are_too_many) {
  sources_.hangs_in_close = true;
  args_.ca_count = 1;
  const Nfs4Options limits;
  for (std::uint32_t made = 0; made < limits.copies; ++made) {
    if (made % limits.copies_of_client == 0) set_up_copier("copier " + std::to_string(made));
    copied_at_once();
  }
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_DELAY) << "its own are too many";
  set_up_copier("one more");
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
}

// A server that waits for the end of the calls in progress does not wait for the source of a copy.
TEST_F(Nfs4CopyFromServer, ends_when_the_server_is_about_to) {
  sources_.hangs_in_open = true;
  const Timer ending = loop_.after(1s, [this] { nfs4_.stop_copies_from_servers(); });
  const TimePoint asked = loop_.now();
  args_.ca_synchronous = true;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_EQ(loop_.now() - asked, 1s);
  sources_.hangs_in_open = false;
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_EQ(sources_.places.size(), 1u);
}

class Nfs4CopyFromNobody : public Nfs4CopyFromServer {
 protected:
  SourceServers* sources() override { return nullptr; }
};

TEST_F(Nfs4CopyFromNobody, is_denied) {
  const auto before = times_traced(Reason::Nfs4CopySourceRefused);
  EXPECT_EQ(copy().cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
  EXPECT_EQ(times_traced(Reason::Nfs4CopySourceRefused), before);
}

}  // namespace
}  // namespace stag::nfs::nfs4
