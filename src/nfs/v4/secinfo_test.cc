// SECINFO and SECINFO_NO_NAME (RFC 8881 18.29, 18.45).
#include "nfs/export/client_names.h"
#include "nfs/v4/attributes/attribute_set.h"
#include "testing/claimed_kerberos.h"
#include "testing/held_executor.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4Secinfo : public Nfs4Served {
 protected:
  // /data as it is, and below it an export that does not take the flavor of the tests.
  void SetUp() override {
    Nfs4Served::SetUp();
    nfs::ExportOptions open;
    nfs::ExportOptions other;
    other.flavors = {oncrpc::AuthFlavor::AUTH_NONE};
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/data", store_, open}).ok());
    STAG_CHECK(exports.add(3, {"/data/other", fixed_store_, other}).ok());
    context_.exports.replace(std::move(exports));
  }
  static Op secinfo(const std::string& name) {
    return op(v4::OP_SECINFO, &Op::opsecinfo, v4::SECINFO4args{name});
  }
  static Op secinfo_no_name(v4::secinfo_style4 style) {
    return op(v4::OP_SECINFO_NO_NAME, &Op::opsecinfo_no_name, v4::SECINFO_NO_NAME4args{style});
  }
  static std::vector<std::uint32_t> flavors(const v4::SECINFO4res& results) {
    EXPECT_EQ(results.status, v4::NFS4_OK);
    std::vector<std::uint32_t> all;
    if (results.status != v4::NFS4_OK) return all;
    for (const v4::secinfo4& entry : results.resok4()) all.push_back(entry.flavor);
    return all;
  }
  const std::vector<std::uint32_t> kNone{0};
};

TEST_F(Nfs4Secinfo, tells_what_an_export_takes_that_the_caller_may_not_enter) {
  EXPECT_EQ(run({putrootfh(), lookup("data"), lookup("other")}).status, v4::NFS4ERR_WRONGSEC);
  const Res results = run({putrootfh(), lookup("data"), secinfo("other")});
  EXPECT_EQ(flavors(results.resarray.back().opsecinfo()), kNone);
}

TEST_F(Nfs4Secinfo, consumes_the_current_filehandle) {
  EXPECT_EQ(run({putrootfh(), secinfo("data"), getfh()}).status, v4::NFS4ERR_NOFILEHANDLE);
  EXPECT_EQ(run({putrootfh(), secinfo_no_name(v4::SECINFO_STYLE4_CURRENT_FH), getfh()}).status,
            v4::NFS4ERR_NOFILEHANDLE);
}

TEST_F(Nfs4Secinfo, is_NOENT_for_a_name_that_is_not_there) {
  EXPECT_EQ(run({putrootfh(), secinfo("nothing")}).status, v4::NFS4ERR_NOENT);
  EXPECT_EQ(run({putrootfh(), lookup("data"), secinfo("nothing")}).status, v4::NFS4ERR_NOENT);
  EXPECT_EQ(run({putrootfh(), secinfo("")}).status, v4::NFS4ERR_INVAL);
}

TEST_F(Nfs4Secinfo, tells_of_the_filehandle_itself_and_of_its_parent) {
  const Res here =
      run({putrootfh(), lookup("data"), secinfo_no_name(v4::SECINFO_STYLE4_CURRENT_FH)});
  const Res above = run({putrootfh(), lookup("data"), secinfo_no_name(v4::SECINFO_STYLE4_PARENT)});
  EXPECT_FALSE(flavors(here.resarray.back().opsecinfo_no_name()).empty());
  EXPECT_FALSE(flavors(above.resarray.back().opsecinfo_no_name()).empty());
  EXPECT_EQ(run({putrootfh(), secinfo_no_name(v4::SECINFO_STYLE4_PARENT)}).status,
            v4::NFS4ERR_NOENT);
}

TEST_F(Nfs4Secinfo, has_an_export_of_another_flavor_in_the_listing_of_the_folder_above) {
  nfs::ExportOptions other;
  other.flavors = {oncrpc::AuthFlavor::AUTH_NONE};
  nfs::Exports exports;
  STAG_CHECK(exports.add(1, {"/data", store_, {}}).ok());
  STAG_CHECK(exports.add(2, {"/other", fixed_store_, other}).ok());
  context_.exports.replace(std::move(exports));
  for (const std::uint32_t asked : {0u, 1u << v4::FATTR4_RDATTR_ERROR}) {
    v4::READDIR4args args;
    args.dircount = args.maxcount = 4096;
    args.attr_request = {asked | 1u << v4::FATTR4_TYPE};
    Res results = run({putrootfh(), op(v4::OP_READDIR, &Op::opreaddir, args)});
    ASSERT_EQ(results.status, v4::NFS4_OK);
    const auto& entries = results.resarray[1].opreaddir().resok4().reply.entries;
    ASSERT_EQ(entries.size(), 2u);
    const v4::fattr4& listed = entries[entries[0].name == "other" ? 0 : 1].attrs;
    EXPECT_EQ(AttributeSet(listed.attrmask), AttributeSet(v4::bitmap4{asked}));
    const Buffer values = listed.attr_vals.flatten();
    ASSERT_EQ(values.size(), asked == 0 ? 0u : 4u);
    if (asked != 0) {
      EXPECT_EQ(load_be<std::uint32_t>(values.bytes().data()),
                static_cast<std::uint32_t>(v4::NFS4ERR_WRONGSEC));
    }
  }
}

class Nfs4Kerberos : public Nfs4Secinfo {
 protected:
  using enum oncrpc::AuthFlavor;
  void SetUp() override {
    server_.add(std::make_unique<ClaimedKerberosAuthenticator>());
    Nfs4Secinfo::SetUp();
    serve(
        {{"/data", "sec=krb5i:sys"}, {"/deep/er/secret", "sec=krb5p"}, {"/deep/open", "sec=sys"}});
  }
  void serve(std::vector<std::pair<std::string, std::string>> paths_and_options) {
    nfs::Exports exports;
    std::uint32_t id = 0;
    for (const auto& [path, words] : paths_and_options)
      STAG_CHECK(exports.add(++id, {path, store_, *parse_export_options(words)}).ok());
    context_.exports.replace(std::move(exports));
  }
  void as_user(oncrpc::AuthFlavor flavor) { credentials_ = claimed_kerberos(flavor, 7, 7); }
  // Each entry of the answer, as "flavor", or "flavor/service" of RPCSEC_GSS.
  static std::vector<std::string> told(const v4::SECINFO4res& results) {
    EXPECT_EQ(results.status, v4::NFS4_OK);
    std::vector<std::string> all;
    for (const v4::secinfo4& entry : results.resok4()) {
      all.push_back(std::to_string(entry.flavor));
      if (entry.flavor != v4::RPCSEC_GSS) continue;
      const Buffer oid = entry.flavor_info().oid.flatten();
      EXPECT_EQ(text_of(oid.bytes()), "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02");
      EXPECT_EQ(entry.flavor_info().qop, 0u);
      all.back() += "/" + std::to_string(entry.flavor_info().service);
    }
    return all;
  }
  using Told = std::vector<std::string>;
};

TEST_F(Nfs4Kerberos, is_told_with_its_mechanism_and_service_in_the_order_of_preference) {
  const Res results = run({putrootfh(), secinfo("data")});
  EXPECT_EQ(told(results.resarray.back().opsecinfo()), (Told{"6/2", "1"}));
}

TEST_F(Nfs4Kerberos, flavors_of_an_export_are_told_in_the_folders_that_lead_to_it) {
  const auto here = secinfo_no_name(v4::SECINFO_STYLE4_CURRENT_FH);
  const Res root = run({putrootfh(), here});
  EXPECT_EQ(told(root.resarray.back().opsecinfo_no_name()), (Told{"6/2", "1", "6/3"}));
  const Res folder = run({putrootfh(), secinfo("deep")});
  EXPECT_EQ(told(folder.resarray.back().opsecinfo()), (Told{"6/3", "1"}));
}

TEST_F(Nfs4Kerberos, walks_the_pseudo_file_system_with_any_flavor_up_to_an_export_with_another) {
  for (const auto flavor : {KRB5, KRB5I}) {
    as_user(flavor);
    EXPECT_EQ(run({putrootfh(), lookup("deep"), lookup("er"), getfh()}).status, v4::NFS4_OK);
    EXPECT_EQ(run({putrootfh(), lookup("deep"), lookup("er"), lookup("secret")}).status,
              v4::NFS4ERR_WRONGSEC);
  }
  as_user(KRB5P);
  EXPECT_EQ(run({putrootfh(), lookup("deep"), lookup("er"), lookup("secret"), getfh()}).status,
            v4::NFS4_OK);
}

TEST_F(Nfs4Kerberos, has_one_principal_for_all_services) {
  as_user(KRB5I);
  const auto client = exchange_id("a machine");
  as_user(KRB5P);
  const auto create = [&] {
    return compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
                        session_args(client.eir_clientid, client.eir_sequenceid))});
  };
  EXPECT_EQ(create().status, v4::NFS4_OK);
  const auto other = exchange_id("another machine");
  credentials_ = claimed_kerberos(KRB5I, 7, 7, "somebody.else@EXAMPLE.ORG");
  EXPECT_EQ(compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
                         session_args(other.eir_clientid, other.eir_sequenceid))})
                .status,
            v4::NFS4ERR_CLID_INUSE);
}

// RFC 8881 2.6.3.1.1. A caller with AUTH_SYS has filehandles of an export that takes AUTH_NONE
// only.
TEST_F(Nfs4Secinfo, waits_for_the_host_names_that_exports_below_the_folder_ask_for) {
  struct Nobody final : HostNameService {
    Texts names_of(const std::string&) override { return std::vector<std::string>{}; }
    Texts addresses_of(const std::string&) override { return std::vector<std::string>{}; }
    Result<std::string, NoAnswer> domain() override { return std::string(); }
    Result<bool, NoAnswer> is_member(const std::string&, const std::string&) override {
      return false;
    }
    Result<bool, NoAnswer> has_netgroup(const std::string&) override { return false; }
  };
  const auto worker = std::make_shared<HeldExecutor>();
  ExportSpec spec{"/data", store_, {}};
  spec.clients = {*make_client_rule("*.example.com", {})};
  spec.clients[0].names = std::make_shared<ClientNames>(std::make_shared<Nobody>(), worker);
  nfs::Exports exports;
  ASSERT_TRUE(exports.add(1, std::move(spec)).ok());
  context_.exports.replace(std::move(exports));
  const auto root = [&] {
    return run({putrootfh(), secinfo_no_name(v4::SECINFO_STYLE4_CURRENT_FH)}).status;
  };
  EXPECT_EQ(root(), v4::NFS4ERR_DELAY);
  worker->run_all();
  EXPECT_EQ(root(), v4::NFS4_OK);
}

class Nfs4WrongSecurity : public Nfs4Secinfo {
 protected:
  void SetUp() override {
    Nfs4Secinfo::SetUp();
    credentials_ = rpc::Credentials();
    other_ = walk({"data", "other"});
    v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true);
    ASSERT_EQ(run({putfh(other_), op(v4::OP_OPEN, &Op::opopen, std::move(args))}).status,
              v4::NFS4_OK);
    const Res found = run({putfh(other_), lookup("file"), getfh()});
    ASSERT_EQ(found.status, v4::NFS4_OK);
    file_ = found.resarray.back().opgetfh().resok4().object;
    as(0, 0);
    data_ = walk({"data"});
  }
  // Of each operation, as far as they ran.
  std::vector<v4::nfsstat4> statuses(std::vector<Op> operations) {
    const std::size_t sent = operations.size();
    const Res results = run(std::move(operations));
    std::vector<v4::nfsstat4> all(results.resarray.size(), v4::NFS4_OK);
    if (results.status != v4::NFS4_OK && !all.empty()) all.back() = results.status;
    EXPECT_LE(all.size(), sent);
    return all;
  }
  using Statuses = std::vector<v4::nfsstat4>;
  static constexpr auto kOk = v4::NFS4_OK;
  static constexpr auto kWrong = v4::NFS4ERR_WRONGSEC;
  static Op savefh() { return op(v4::OP_SAVEFH); }
  static Op restorefh() { return op(v4::OP_RESTOREFH); }
  static Op lookupp() { return op(v4::OP_LOOKUPP); }
  static Op getattr_type() { return getattr({1u << v4::FATTR4_TYPE}); }

  v4::nfs_fh4 other_, file_, data_;
};

TEST_F(Nfs4WrongSecurity, is_PUTFHs_error_where_something_else_follows) {
  EXPECT_EQ(statuses({putfh(other_), getattr_type()}), Statuses{kWrong});
  EXPECT_EQ(statuses({putfh(other_), getfh()}), Statuses{kWrong});
  EXPECT_EQ(statuses({putfh(file_), read_op({}, 0, 1)}), Statuses{kWrong});
  EXPECT_EQ(statuses({putfh(other_), savefh(), getattr_type()}), Statuses{kWrong});
}

TEST_F(Nfs4WrongSecurity, is_no_error_where_nothing_or_another_filehandle_follows) {
  EXPECT_EQ(statuses({putfh(other_)}), Statuses{kOk});
  EXPECT_EQ(statuses({putfh(other_), savefh()}), (Statuses{kOk, kOk}));
  EXPECT_EQ(statuses({putfh(other_), putfh(data_), getattr_type()}), (Statuses{kOk, kOk, kOk}));
  EXPECT_EQ(statuses({putfh(other_), savefh(), putfh(data_), getfh()}),
            (Statuses{kOk, kOk, kOk, kOk}));
}

TEST_F(Nfs4WrongSecurity, is_returned_by_RESTOREFH_for_a_saved_filehandle) {
  EXPECT_EQ(statuses({putfh(other_), savefh(), putfh(data_), restorefh(), getfh()}),
            (Statuses{kOk, kOk, kOk, kWrong}));
  EXPECT_EQ(statuses({putfh(other_), savefh(), putfh(data_), restorefh(),
                      secinfo_no_name(v4::SECINFO_STYLE4_CURRENT_FH)}),
            (Statuses{kOk, kOk, kOk, kOk, kOk}));
}

TEST_F(Nfs4WrongSecurity, is_the_error_of_LOOKUP_and_of_OPEN_by_name) {
  EXPECT_EQ(statuses({putfh(other_), lookup("file")}), (Statuses{kOk, kWrong}));
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_READ, false);
  EXPECT_EQ(statuses({putfh(other_), op(v4::OP_OPEN, &Op::opopen, args)}), (Statuses{kOk, kWrong}));
  args.claim.claim = v4::CLAIM_FH;
  EXPECT_EQ(statuses({putfh(file_), op(v4::OP_OPEN, &Op::opopen, args)}), Statuses{kWrong});
}

TEST_F(Nfs4WrongSecurity, does_not_keep_LOOKUPP_from_an_export_that_takes_the_flavor) {
  EXPECT_EQ(statuses({putfh(other_), lookupp(), getattr_type()}), (Statuses{kOk, kOk, kOk}));
  EXPECT_EQ(statuses({putfh(file_), lookupp()}), (Statuses{kOk, kWrong}));
}

TEST_F(Nfs4WrongSecurity, does_not_keep_SECINFO_from_telling_the_right_flavors) {
  const Res by_name = run({putfh(other_), secinfo("file")});
  EXPECT_EQ(flavors(by_name.resarray.back().opsecinfo()), kNone);
  for (const v4::nfs_fh4& handle : {other_, file_}) {
    const Res here = run({putfh(handle), secinfo_no_name(v4::SECINFO_STYLE4_CURRENT_FH)});
    EXPECT_EQ(flavors(here.resarray.back().opsecinfo_no_name()), kNone);
  }
  EXPECT_EQ(statuses({putfh(other_), secinfo_no_name(v4::SECINFO_STYLE4_CURRENT_FH), getfh()}),
            (Statuses{kOk, kOk, v4::NFS4ERR_NOFILEHANDLE}));
  EXPECT_EQ(statuses({putfh(other_), secinfo("nothing")}), (Statuses{kOk, v4::NFS4ERR_NOENT}));
}

// RFC 8881 2.6.3.1.2: no flavor is good for both.
TEST_F(Nfs4WrongSecurity, is_XDEV_for_RENAME_LINK_and_CLONE_from_the_saved_filehandle) {
  const std::vector<Op> both{putfh(file_), savefh(), putfh(data_)};
  for (const Op& last : {op(v4::OP_RENAME, &Op::oprename, v4::RENAME4args{"file", "file"}),
                         op(v4::OP_LINK, &Op::oplink, v4::LINK4args{"name"})}) {
    std::vector<Op> operations = both;
    operations.push_back(last);
    EXPECT_EQ(statuses(operations), (Statuses{kOk, kOk, kOk, v4::NFS4ERR_XDEV}));
  }
  minor_ = 2;
  std::vector<Op> operations = both;
  operations.push_back(op(v4::OP_CLONE, &Op::opclone, v4::CLONE4args{}));
  EXPECT_EQ(statuses(operations), (Statuses{kOk, kOk, kOk, v4::NFS4ERR_XDEV}));
}

}  // namespace
}  // namespace stag::nfs::nfs4
