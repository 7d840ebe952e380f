// Results that are kept for a retry, in a session (RFC 8881 2.10.6.1.3) and of version 4.0 (RFC
// 7530 16.33.5): limits count their own bytes, so no others stay because of them.
#include "testing/nfs/nfs40_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

template <class Served>
class KeptResults : public Served {
 protected:
  using Res = typename Served::Res;

  // Afterwards the file is where `data_` lies.
  void fill(const std::string& name) {
    const auto found = now(this->store_->lookup(administrator_, this->store_->root(), name));
    ASSERT_TRUE(found.ok());
    ASSERT_TRUE(now(this->store_->write(administrator_, found->node.handle, 0, Rope(data_),
                                        vfs::Stability::FileSync))
                    .ok());
    ASSERT_TRUE(is_in_use());
  }
  void remove(const std::string& name) {
    ASSERT_TRUE(now(this->store_->remove(administrator_, this->store_->root(), name)).ok());
    this->channel_.last_reply = {};
  }
  bool is_in_use() { return data_.exclusive().empty(); }

 private:
  template <class T>
  vfs::Outcome<T> now(vfs::Operation<T> operation) {
    const auto await = [](vfs::Operation<T> started) -> Task<vfs::Outcome<T>> {
      co_return co_await std::move(started);
    };
    return *this->loop_.run(await(std::move(operation)));
  }

  const vfs::Credentials root_{0, 0, {}};
  const vfs::CallerContext administrator_{this->loop_, root_};
  Buffer data_ = Buffer::copy_of(bytes_of(std::string(1 << 20, 'x')));
};

using Nfs4KeptResults = KeptResults<Nfs4Served>;
using Nfs40KeptResults = KeptResults<Nfs40Served>;

TEST_F(Nfs4KeptResults, READ_leaves_nothing_of_the_file_in_use) {
  const Opened file = create("file");
  fill("file");
  const std::vector<Op> reading = {sequence(true), putfh(file.handle),
                                   read_op(file.stateid, 0, 2000)};
  const Res first = compound(reading);
  ASSERT_EQ(first.status, v4::NFS4_OK);
  ASSERT_EQ(first.resarray[2].opread().resok4().data.size(), 2000u);
  remove("file");
  EXPECT_FALSE(is_in_use());
  EXPECT_EQ(compound(reading), first) << "though the file is gone";
}

TEST_F(Nfs40KeptResults, READ_leaves_nothing_of_the_file_in_use) {
  const Opened file = open_file(1, "file", "owner");
  fill("file");
  const Res first = run({putfh(file.handle),
                         op(v4::OP_SETATTR, &Op::opsetattr, v4::SETATTR4args{file.stateid, {}}),
                         read_op(file.stateid, 0, 2000)});
  ASSERT_EQ(first.status, v4::NFS4_OK);
  ASSERT_EQ(first.resarray[2].opread().resok4().data.size(), 2000u);
  remove("file");
  EXPECT_FALSE(is_in_use());
  EXPECT_EQ(last_call_again(), first) << "though the file is gone";
}

}  // namespace
}  // namespace stag::nfs::nfs4
