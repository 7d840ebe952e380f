// OPEN by name of a file that another client removes while it is being opened.
#include "testing/nfs/nfs4_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using vfs::testing::Called;
using vfs::testing::Point;

class Nfs4OpenByName : public Nfs4Served {
 protected:
  // A file that is removed `times` times when it has been found, before the store does `when`.
  void serve_vanishing(Called when, int times) {
    left_ = times;
    const auto remove = [this, when](Point point) -> std::optional<vfs::Status> {
      looked_ += point == Point{Called::Lookup, Point::When::Happened};
      if (point == Point{when, Point::When::Begin} && left_-- > 0) remove_file();
      return std::nullopt;
    };
    ExportOptions open;
    open.root_squash = false;
    Exports exports;
    STAG_CHECK(exports
                   .add(1, {"/data",
                            std::make_shared<vfs::testing::SteppedStore>(
                                store_, std::make_shared<vfs::testing::FailingSteps>(remove)),
                            open})
                   .ok());
    context_.exports.replace(std::move(exports));
    looked_ = 0;
  }
  void remove_file() {
    const vfs::Credentials administrator{0, 0, {}};
    auto removed = store_->remove({loop_, administrator}, store_->root(), "file");
    STAG_CHECK(removed.ready() && removed.value().ok());
    if (comes_back_) make_file();
  }
  void make_file() {
    const vfs::Credentials administrator{0, 0, {}};
    auto made = store_->create({loop_, administrator}, store_->root(), "file", {});
    STAG_CHECK(made.ready() && made.value().ok());
  }
  v4::nfsstat4 open_by_name() {
    return open(open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, false)).status;
  }
  v4::OPEN4args emptying() {
    v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true);
    xdr::Encoder size;
    size.u64(0);
    args.openhow.how().createattrs() = {{1u << v4::FATTR4_SIZE}, std::move(size).finish().rope()};
    return args;
  }

  bool comes_back_ = false;  // under the same name, another one
  int looked_ = 0;

 private:
  int left_ = 0;
};

TEST_F(Nfs4OpenByName, finds_nothing_where_the_file_has_just_gone) {
  make_file();
  serve_vanishing(Called::Access, 1);
  EXPECT_EQ(open_by_name(), v4::NFS4ERR_NOENT);
}

TEST_F(Nfs4OpenByName, takes_the_file_that_has_the_name_then) {
  make_file();
  comes_back_ = true;
  serve_vanishing(Called::Access, 1);
  EXPECT_EQ(open_by_name(), v4::NFS4_OK);
  serve_vanishing(Called::SetAttributes, 1);
  EXPECT_EQ(open(emptying()).status, v4::NFS4_OK);
}

TEST_F(Nfs4OpenByName, makes_the_file_that_has_gone_where_it_may_be_made) {
  for (const Called when : {Called::Access, Called::SetAttributes}) {
    make_file();
    serve_vanishing(when, 1);
    const Opened file = open(emptying());
    ASSERT_EQ(file.status, v4::NFS4_OK);
    EXPECT_EQ(run({putfh(file.handle), write_op(file.stateid, 0, "text")}).status, v4::NFS4_OK);
    remove_file();
  }
}

TEST_F(Nfs4OpenByName, looks_again_a_few_times_only) {
  make_file();
  comes_back_ = true;
  serve_vanishing(Called::Access, 1000);
  EXPECT_EQ(open_by_name(), v4::NFS4ERR_STALE);
  EXPECT_GT(looked_, 1);
  EXPECT_LT(looked_, 20);
}

TEST_F(Nfs4OpenByName, is_not_what_an_OPEN_of_a_filehandle_becomes) {
  const Opened file = create("file");
  comes_back_ = true;
  serve_vanishing(Called::Access, 1);
  v4::OPEN4args args = open_args("", v4::OPEN4_SHARE_ACCESS_READ, false);
  args.claim.claim = v4::CLAIM_FH;
  EXPECT_EQ(run({putfh(file.handle), op(v4::OP_OPEN, &Op::opopen, std::move(args))}).status,
            v4::NFS4ERR_STALE);
}

TEST_F(Nfs4OpenByName, leaves_no_open_of_a_file_that_has_gone) {
  make_file();
  serve_vanishing(Called::SetAttributes, 1);
  ASSERT_EQ(open(emptying()).status, v4::NFS4_OK);
  EXPECT_EQ(context_.gate->files()->states(), 1u);
}

}  // namespace
}  // namespace stag::nfs::nfs4
