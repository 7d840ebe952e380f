// The pseudo file system while exports come and go: what clients have cached of its folders, and
// listings that have begun.
#include "nfs/v4/compound/pseudo_fs.h"

#include <algorithm>
#include <set>

#include "nfs/export/client_names.h"
#include "nfs/v4/attributes/attribute_set.h"
#include "testing/held_executor.h"
#include "testing/nfs/nfs4_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4PseudoFsReloaded : public Nfs4Served {
 protected:
  static std::string name(int number) { return "e" + std::to_string(number); }

  // /x/eN for each of these numbers, open to everybody; one of them to another client alone.
  void serve(const std::set<int>& numbers, int closed = -1) {
    Exports exports;
    for (const int number : numbers) {
      ExportSpec spec{"/x/" + name(number), store_, {}};
      if (number == closed) spec.clients.push_back(*make_client_rule("192.0.2.1", spec.options));
      STAG_CHECK(exports.add(static_cast<std::uint32_t>(number) + 1, std::move(spec)).ok());
    }
    context_.exports.replace(std::move(exports));
  }
  std::uint64_t change() {
    const Res results = run({putrootfh(), lookup("x"), getattr({1u << v4::FATTR4_CHANGE})});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    const Buffer values =
        results.resarray[2].opgetattr().resok4().obj_attributes.attr_vals.flatten();
    return load_be<std::uint64_t>(values.bytes().data());
  }

  v4::READDIR4res page(const v4::READDIR4args& from) {
    Res results = run({putrootfh(), lookup("x"), op(v4::OP_READDIR, &Op::opreaddir, from)});
    return std::move(results.resarray[2].opreaddir());
  }
  // The names of a page, and where the next one begins; nullopt: there is none.
  std::vector<std::string> names(std::optional<v4::READDIR4args>& from) {
    const v4::READDIR4res listed = page(*from);
    EXPECT_EQ(listed.status, v4::NFS4_OK);
    std::vector<std::string> names;
    if (listed.status != v4::NFS4_OK) return from.reset(), names;
    from->cookieverf = listed.resok4().cookieverf;
    for (const v4::entry4& entry : listed.resok4().reply.entries) {
      names.push_back(entry.name);
      from->cookie = entry.cookie;
    }
    if (listed.resok4().reply.eof) from.reset();
    return names;
  }
  static v4::READDIR4args short_page() {
    v4::READDIR4args args;
    args.dircount = args.maxcount = 160;
    return args;
  }
};

TEST_F(Nfs4PseudoFsReloaded, has_a_change_that_rises_whatever_a_client_sees_of_it_now) {
  std::uint64_t last = 0;
  const auto rises = [&] { return std::exchange(last, change()) < last; };
  for (const std::set<int>& numbers : {std::set{1, 2, 3}, {1, 2}, {1}, {1, 2}, {1, 2, 3}}) {
    serve(numbers);
    EXPECT_TRUE(rises()) << numbers.size() << " exports";
  }
  serve({1, 2, 3}, 2);
  EXPECT_TRUE(rises()) << "one is closed to the client";
  serve({1, 2, 3});
  EXPECT_TRUE(rises()) << "and open again";
  EXPECT_EQ(change(), last) << "nothing happened";
}

TEST_F(Nfs4PseudoFsReloaded, is_listed_whole_though_exports_come_and_go_between_two_pages) {
  std::set<int> stay, gone;
  for (int i = 0; i < 40; ++i) (i % 4 == 0 ? gone : stay).insert(i);
  std::set<int> before = stay, after = stay;
  before.insert(gone.begin(), gone.end());
  for (int i = 40; i < 60; ++i) after.insert(i);
  serve(before);
  std::optional<v4::READDIR4args> next = short_page();
  std::vector<std::string> listed;
  for (int pages = 0; next && pages < 60; ++pages) {
    std::ranges::copy(names(next), std::back_inserter(listed));
    serve(pages % 2 == 0 ? after : before);
  }
  for (const int number : stay)
    EXPECT_EQ(std::ranges::count(listed, name(number)), 1) << name(number);
}

TEST_F(Nfs4PseudoFsReloaded, is_listed_with_an_export_whose_root_is_gone_and_what_was_asked_for) {
  const auto gone = std::make_shared<vfs::testing::FailingSteps>(
      [](vfs::testing::Point) { return std::optional(vfs::Status::Stale); });
  Exports exports;
  STAG_CHECK(
      exports.add(1, {"/x/gone", std::make_shared<vfs::testing::SteppedStore>(store_, gone), {}})
          .ok());
  context_.exports.replace(std::move(exports));
  for (const std::uint32_t error : {0u, 1u << v4::FATTR4_RDATTR_ERROR}) {
    v4::READDIR4args args;
    args.dircount = args.maxcount = 4096;
    args.attr_request = {error | 1u << v4::FATTR4_TYPE};
    const v4::READDIR4res listed = page(args);
    ASSERT_EQ(listed.status, v4::NFS4_OK);
    ASSERT_EQ(listed.resok4().reply.entries.size(), 1u);
    const v4::bitmap4& given = listed.resok4().reply.entries[0].attrs.attrmask;
    EXPECT_EQ(AttributeSet(given), AttributeSet(v4::bitmap4{error}));
  }
}

// RFC 8881 15.1.4.11: NFS4ERR_ROFS is of what would change something.
TEST_F(Nfs4PseudoFsReloaded, opens_nothing_and_says_what_a_name_is) {
  serve({1, 2});
  const auto opened = [&](const std::string& name, std::optional<v4::createmode4> mode = {}) {
    v4::OPEN4args args = open_args(name, v4::OPEN4_SHARE_ACCESS_READ, mode.has_value());
    if (mode) args.openhow.how().mode = *mode;
    return run({putrootfh(), lookup("x"), op(v4::OP_OPEN, &Op::opopen, std::move(args))}).status;
  };
  for (minor_ = 1; minor_ <= 2; ++minor_) {
    EXPECT_EQ(opened("missing"), v4::NFS4ERR_NOENT);
    EXPECT_EQ(opened("e1"), v4::NFS4ERR_ISDIR);
    EXPECT_EQ(opened(""), v4::NFS4ERR_INVAL);
    EXPECT_EQ(opened("missing", v4::UNCHECKED4), v4::NFS4ERR_ROFS);
    EXPECT_EQ(opened("missing", v4::GUARDED4), v4::NFS4ERR_ROFS);
    EXPECT_EQ(opened("e1", v4::UNCHECKED4), v4::NFS4ERR_ISDIR);
    EXPECT_EQ(opened("e1", v4::GUARDED4), v4::NFS4ERR_EXIST);
    v4::OPEN4args itself = open_args("", v4::OPEN4_SHARE_ACCESS_READ, false);
    itself.claim.claim = v4::CLAIM_FH;
    EXPECT_EQ(run({putrootfh(), op(v4::OP_OPEN, &Op::opopen, itself)}).status, v4::NFS4ERR_ISDIR);
  }
}

// Else a client would keep a list without what it may enter in the next moment.
TEST_F(Nfs4PseudoFsReloaded, has_a_change_that_rises_when_it_is_known_what_the_client_may_enter) {
  struct Host final : HostNameService {
    Texts names_of(const std::string&) override { return std::vector<std::string>{"a.test"}; }
    Texts addresses_of(const std::string&) override {
      return std::vector<std::string>{"192.0.2.1"};
    }
    Result<std::string, NoAnswer> domain() override { return std::string(); }
    Result<bool, NoAnswer> is_member(const std::string&, const std::string&) override {
      return false;
    }
    Result<bool, NoAnswer> has_netgroup(const std::string&) override { return false; }
  };
  for (const std::string named : {"/x/named", "/x/closed/named"}) {
    const auto worker = std::make_shared<HeldExecutor>();
    ExportSpec spec{named, store_, {}};
    spec.clients = {*make_client_rule("*.test", {})};
    spec.clients[0].names = std::make_shared<ClientNames>(std::make_shared<Host>(), worker);
    ExportSpec closed{"/x/closed", store_, {}};
    closed.clients = {*make_client_rule("192.0.2.9", {})};
    Exports exports;
    STAG_CHECK(exports.add(1, std::move(spec)).ok());
    STAG_CHECK(exports.add(2, std::move(closed)).ok());
    STAG_CHECK(exports.add(3, {"/x/open", store_, {}}).ok());
    context_.exports.replace(std::move(exports));
    v4::READDIR4args all;
    all.dircount = all.maxcount = 4096;
    const auto listed = [this, all] {
      std::optional<v4::READDIR4args> from = all;
      return names(from);
    };
    const std::uint64_t before = change();
    EXPECT_EQ(listed(), std::vector<std::string>{"open"}) << named;
    EXPECT_EQ(change(), before);
    worker->run_all();
    EXPECT_GT(change(), before) << named;
    EXPECT_EQ(listed().size(), 2u) << named;
  }
}

}  // namespace
}  // namespace stag::nfs::nfs4
