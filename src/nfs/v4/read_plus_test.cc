// READ_PLUS (RFC 7862 15.10): holes are told by their length.
#include "testing/nfs/nfs4_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

constexpr std::uint64_t kHole = 1 << 20;

class Nfs4ReadPlus : public Nfs4Served {
 protected:
  Nfs4ReadPlus() { minor_ = 2; }

  Op read_plus_op(const v4::stateid4& stateid, std::uint64_t offset, std::uint32_t count) {
    return op(v4::OP_READ_PLUS, &Op::opread_plus, v4::READ_PLUS4args{stateid, offset, count});
  }
  v4::READ_PLUS4res read_plus(const Opened& file, std::uint64_t offset, std::uint32_t count) {
    const Res results = run({putfh(file.handle), read_plus_op(file.stateid, offset, count)});
    EXPECT_EQ(results.resarray.size(), 2u);
    return results.resarray.back().opread_plus();
  }
  void write(const Opened& file, std::uint64_t offset, std::string_view text) {
    ASSERT_EQ(run({putfh(file.handle), write_op(file.stateid, offset, text)}).status, v4::NFS4_OK);
  }
  // "head", a hole up to 1 MiB, "tail".
  Opened sparse() {
    const Opened file = create("sparse");
    write(file, 0, "head");
    write(file, kHole, "tail");
    EXPECT_EQ(run({putfh(file.handle), op(v4::OP_DEALLOCATE, &Op::opdeallocate,
                                          v4::DEALLOCATE4args{file.stateid, 4, kHole - 4})})
                  .status,
              v4::NFS4_OK);
    return file;
  }
  static std::string told(v4::read_plus_res4& results) {
    std::string all;
    for (v4::read_plus_content& one : results.rpr_contents) {
      if (one.rpc_content == v4::NFS4_CONTENT_DATA)
        all += std::to_string(one.rpc_data().d_offset) + ":" + text(one.rpc_data().d_data) + " ";
      else
        all += std::to_string(one.rpc_hole().di_offset) + "+" +
               std::to_string(one.rpc_hole().di_length) + " ";
    }
    return all + (results.rpr_eof ? "eof" : "");
  }
  std::string told(const Opened& file, std::uint64_t offset, std::uint32_t count) {
    v4::READ_PLUS4res results = read_plus(file, offset, count);
    EXPECT_EQ(results.rp_status, v4::NFS4_OK);
    return results.rp_status == v4::NFS4_OK ? told(results.rp_resok4()) : "";
  }
};

TEST_F(Nfs4ReadPlus, tells_data_and_holes_in_turn) {
  const Opened file = sparse();
  EXPECT_EQ(told(file, 0, 2 * kHole), "0:head 4+1048572 1048576:tail eof");
  EXPECT_EQ(told(file, 2, 2), "2:ad ");
  EXPECT_EQ(told(file, 10, 20), "10+20 ") << "no more of a hole than was asked for";
  EXPECT_EQ(told(file, kHole - 1, 3), "1048575+1 1048576:ta ");
  EXPECT_EQ(told(file, kHole + 2, 2), "1048578:il eof");
}

TEST_F(Nfs4ReadPlus, ends_with_a_hole_where_the_file_does) {
  const Opened file = create("file");
  write(file, 0, "head");
  v4::SETATTR4args args;
  args.stateid = file.stateid;
  xdr::Encoder size;
  size.u64(100);
  args.obj_attributes = {{1u << v4::FATTR4_SIZE}, std::move(size).finish().rope()};
  ASSERT_EQ(run({putfh(file.handle), op(v4::OP_SETATTR, &Op::opsetattr, args)}).status,
            v4::NFS4_OK);
  EXPECT_EQ(told(file, 0, 1000), "0:head 4+96 eof");
  EXPECT_EQ(told(file, 0, 50), "0:head 4+46 ");
}

TEST_F(Nfs4ReadPlus, tells_nothing_beyond_the_end) {
  const Opened file = create("file");
  EXPECT_EQ(told(file, 0, 10), "eof");
  write(file, 0, "text");
  EXPECT_EQ(told(file, 4, 10), "eof");
  EXPECT_EQ(told(file, ~std::uint64_t{0}, 10), "eof");
  EXPECT_EQ(told(file, 0, 0), "");
}

TEST_F(Nfs4ReadPlus, returns_data_alone_where_the_store_knows_no_holes) {
  const Opened file = sparse();
  nfs::ExportOptions open;
  open.root_squash = false;
  nfs::Exports exports;
  const auto without = std::make_shared<vfs::testing::SteppedStore>(
      store_, std::make_shared<vfs::testing::FailingSteps>(
                  [](vfs::testing::Point point) -> std::optional<vfs::Status> {
                    if (point.operation == vfs::testing::Called::Seek)
                      return vfs::Status::NotSupported;
                    return std::nullopt;
                  }));
  STAG_CHECK(exports.add(1, {"/data", without, open}).ok());
  context_.exports.replace(std::move(exports));
  EXPECT_EQ(told(file, kHole - 2, 100), std::string("1048574:\0\0tail eof", 18));
  EXPECT_EQ(told(file, 2 * kHole, 100), "eof");
}

TEST_F(Nfs4ReadPlus, is_refused_as_READ_is) {
  const Opened file = create("file");
  EXPECT_EQ(run({putrootfh(), read_plus_op(v4::stateid4(), 0, 1)}).status, v4::NFS4ERR_ISDIR);
  EXPECT_EQ(run({putrootfh(), lookup("data"), read_plus_op(v4::stateid4(), 0, 1)}).status,
            v4::NFS4ERR_ISDIR);
  EXPECT_EQ(run({putrootfh(), lookup("data"), read_plus_op(v4::stateid4(), 0, 0)}).status,
            v4::NFS4ERR_ISDIR);
  EXPECT_EQ(told(file, 0, 0), "eof");
  v4::stateid4 wrong = file.stateid;
  wrong.other[11] ^= std::byte{1};
  EXPECT_EQ(run({putfh(file.handle), read_plus_op(wrong, 0, 1)}).status, v4::NFS4ERR_BAD_STATEID);
  minor_ = 1;
  EXPECT_EQ(run({putfh(file.handle), read_plus_op(file.stateid, 0, 1)}).status,
            v4::NFS4ERR_OP_ILLEGAL);
}

TEST_F(Nfs4ReadPlus, tells_as_much_as_the_reply_holds) {
  const Opened file = create("file");
  write(file, 0, std::string(20000, 'x'));
  channel_.reply_room.inline_max = 1024;
  v4::READ_PLUS4res results = read_plus(file, 0, 20000);
  channel_.reply_room = {};
  ASSERT_EQ(results.rp_status, v4::NFS4_OK);
  ASSERT_EQ(results.rp_resok4().rpr_contents.size(), 1u);
  const std::uint64_t told = results.rp_resok4().rpr_contents[0].rpc_data().d_data.size();
  EXPECT_GT(told, 500u);
  EXPECT_LT(told, 1024u);
  EXPECT_FALSE(results.rp_resok4().rpr_eof);
}

// RFC 8881 2.10.6.4. A client that was told nothing would ask for the same again, for ever.
TEST_F(Nfs4ReadPlus, is_refused_where_the_reply_does_not_hold_the_least_that_can_be_told) {
  const Opened file = sparse();
  bool refused = false, answered = false;
  for (std::uint32_t room = 100; room < 160; room += 4)
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{10}, 2 * kHole}) {
      channel_.reply_room.inline_max = room;
      const v4::READ_PLUS4res results = read_plus(file, offset, 100);
      channel_.reply_room = {};
      if (results.rp_status != v4::NFS4_OK) {
        EXPECT_EQ(results.rp_status, v4::NFS4ERR_REP_TOO_BIG) << room;
        refused = true;
        continue;
      }
      answered = true;
      const v4::read_plus_res4& told = results.rp_resok4();
      EXPECT_TRUE(told.rpr_eof || !told.rpr_contents.empty()) << offset << " in " << room;
    }
  EXPECT_TRUE(refused && answered);
}

// RFC 8267 6.1: its data is no item that a Write chunk could carry.
TEST_F(Nfs4ReadPlus, leaves_Write_chunks_to_others) {
  const Opened file = create("file");
  write(file, 0, std::string(20000, 'x'));
  channel_.reduce = true;
  EXPECT_EQ(told(file, 0, 20000), "0:" + std::string(20000, 'x') + " eof");
  channel_.reduce = false;
  for (const auto& item : channel_.last_reply.items())
    EXPECT_NE(item.id, v4::item::READ4resok_data);
}

}  // namespace
}  // namespace stag::nfs::nfs4
