// SECINFO and SECINFO_NO_NAME (RFC 8881 18.29, 18.45).
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

TEST_F(Nfs4Secinfo, of_a_name_that_is_not_there_is_an_error) {
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

}  // namespace
}  // namespace stag::nfs::nfs4
