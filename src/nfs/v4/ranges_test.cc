// The operations of version 4.2 on ranges of files (RFC 7862 section 15).
#include "testing/nfs/nfs4_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

constexpr std::uint64_t kMiB = 1 << 20;
// That fits a request and a reply of the session.
constexpr std::uint64_t kPiece = kMiB / 2;

class Nfs4Ranges : public Nfs4Served {
 protected:
  Nfs4Ranges() { minor_ = 2; }

  void write(const Opened& file, std::uint64_t offset, const std::string& text) {
    for (std::size_t done = 0; done < text.size(); done += kPiece)
      ASSERT_EQ(run({putfh(file.handle),
                     write_op(file.stateid, offset + done, text.substr(done, kPiece))})
                    .status,
                v4::NFS4_OK);
  }
  std::string read(const Opened& file, std::uint64_t offset, std::uint64_t count) {
    std::string found;
    while (found.size() < count) {
      const auto piece = static_cast<std::uint32_t>(std::min(count - found.size(), kPiece));
      const Res results =
          run({putfh(file.handle), read_op(file.stateid, offset + found.size(), piece)});
      EXPECT_EQ(results.status, v4::NFS4_OK);
      if (results.status != v4::NFS4_OK) break;
      found += text(results.resarray[1].opread().resok4().data);
      if (results.resarray[1].opread().resok4().eof) break;
    }
    return found;
  }
  v4::SEEK4res seek(const Opened& file, std::uint64_t offset, v4::data_content4 what) {
    const Res results = run({putfh(file.handle), op(v4::OP_SEEK, &Op::opseek,
                                                    v4::SEEK4args{file.stateid, offset, what})});
    return results.resarray.back().opseek();
  }
  v4::nfsstat4 allocate(const Opened& file, std::uint64_t offset, std::uint64_t length) {
    return run({putfh(file.handle), op(v4::OP_ALLOCATE, &Op::opallocate,
                                       v4::ALLOCATE4args{file.stateid, offset, length})})
        .status;
  }
  v4::nfsstat4 deallocate(const Opened& file, std::uint64_t offset, std::uint64_t length) {
    return run({putfh(file.handle), op(v4::OP_DEALLOCATE, &Op::opdeallocate,
                                       v4::DEALLOCATE4args{file.stateid, offset, length})})
        .status;
  }
  Res with_both(const Opened& from, const Opened& to, Op last) {
    return run({putfh(from.handle), op(v4::OP_SAVEFH), putfh(to.handle), std::move(last)});
  }
  v4::nfsstat4 clone(const Opened& from, const Opened& to, const vfs::CopyRange& range) {
    v4::CLONE4args args{from.stateid, to.stateid, range.from, range.to, range.length};
    return with_both(from, to, op(v4::OP_CLONE, &Op::opclone, args)).status;
  }
  v4::COPY4args copy_args(const Opened& from, const Opened& to, const vfs::CopyRange& range) {
    return {from.stateid, to.stateid, range.from, range.to, range.length, true, true, {}};
  }
  v4::COPY4res copy(const Opened& from, const Opened& to, v4::COPY4args args) {
    const Res results = with_both(from, to, op(v4::OP_COPY, &Op::opcopy, std::move(args)));
    return results.resarray.back().opcopy();
  }
  v4::COPY4res copy(const Opened& from, const Opened& to, const vfs::CopyRange& range = {}) {
    return copy(from, to, copy_args(from, to, range));
  }
  Opened reader_of(const std::string& name, const std::string& owner) {
    return open(open_args(name, v4::OPEN4_SHARE_ACCESS_READ, false, owner));
  }
  // An object that is no regular file, with the anonymous stateid.
  Opened made(v4::nfs_ftype4 type) {
    v4::CREATE4args args;
    args.objtype.type = type;
    if (type == v4::NF4LNK) args.objtype.linkdata() = Rope::copy_of(bytes_of("x"));
    args.objname = "object" + std::to_string(type);
    const Res results =
        run({putrootfh(), lookup("data"), op(v4::OP_CREATE, &Op::opcreate, args), getfh()});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    return {v4::NFS4_OK, {}, results.resarray.back().opgetfh().resok4().object};
  }
};

TEST_F(Nfs4Ranges, are_illegal_before_version_4_2) {
  minor_ = 1;
  const Opened file = create("file");
  EXPECT_EQ(allocate(file, 0, 1), v4::NFS4ERR_OP_ILLEGAL);
}

TEST_F(Nfs4Ranges, SEEK_finds_data_and_holes) {
  const Opened file = create("file");
  write(file, kMiB, std::string(kMiB, 'x'));
  const v4::seek_res4 data = seek(file, 0, v4::NFS4_CONTENT_DATA).resok4();
  EXPECT_EQ(data.sr_offset, kMiB);
  EXPECT_FALSE(data.sr_eof);
  const v4::seek_res4 hole = seek(file, kMiB, v4::NFS4_CONTENT_HOLE).resok4();
  EXPECT_EQ(hole.sr_offset, 2 * kMiB);
  EXPECT_TRUE(hole.sr_eof) << "every file ends with a virtual hole";
  EXPECT_EQ(seek(file, 2 * kMiB, v4::NFS4_CONTENT_DATA).sa_status, v4::NFS4ERR_NXIO);
  EXPECT_EQ(seek(file, 2 * kMiB, v4::NFS4_CONTENT_HOLE).sa_status, v4::NFS4ERR_NXIO);
  ASSERT_EQ(deallocate(file, kMiB, kMiB), v4::NFS4_OK);
  EXPECT_TRUE(seek(file, 0, v4::NFS4_CONTENT_DATA).resok4().sr_eof);
}

TEST_F(Nfs4Ranges, are_allocated_and_deallocated) {
  const Opened file = create("file");
  ASSERT_EQ(allocate(file, 10, 90), v4::NFS4_OK);
  EXPECT_EQ(read(file, 0, 200), std::string(100, '\0'));
  write(file, 0, std::string(100, 'x'));
  ASSERT_EQ(deallocate(file, 10, 80), v4::NFS4_OK);
  EXPECT_EQ(read(file, 8, 4), std::string("xx\0\0", 4));
  EXPECT_EQ(read(file, 88, 100), std::string("\0\0", 2) + std::string(10, 'x'));
  EXPECT_EQ(allocate(file, 0, 0), v4::NFS4ERR_INVAL);
  EXPECT_EQ(allocate(file, 1, ~std::uint64_t{0}), v4::NFS4ERR_FBIG);
}

TEST_F(Nfs4Ranges, are_refused_for_other_objects_than_files) {
  const Opened file = create("file");
  write(file, 0, "text");
  for (const v4::nfs_ftype4 type : {v4::NF4DIR, v4::NF4LNK, v4::NF4FIFO}) {
    const Opened object = made(type);
    EXPECT_EQ(allocate(object, 0, 1), v4::NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(deallocate(object, 0, 1), v4::NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(copy(object, file).cr_status, v4::NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(copy(file, object).cr_status, v4::NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(clone(file, object, {}), v4::NFS4ERR_WRONG_TYPE);
    EXPECT_EQ(clone(object, file, {}), v4::NFS4ERR_WRONG_TYPE);
    v4::IO_ADVISE4args args;
    EXPECT_EQ(run({putfh(object.handle), op(v4::OP_IO_ADVISE, &Op::opio_advise, args)}).status,
              v4::NFS4ERR_WRONG_TYPE);
  }
}

TEST_F(Nfs4Ranges, SEEK_refuses_other_objects_than_files_as_READ_and_WRITE_do) {
  for (const auto& [type, status] :
       {std::pair{v4::NF4DIR, v4::NFS4ERR_ISDIR}, std::pair{v4::NF4LNK, v4::NFS4ERR_SYMLINK},
        std::pair{v4::NF4FIFO, v4::NFS4ERR_WRONG_TYPE}}) {
    const Opened object = made(type);
    EXPECT_EQ(seek(object, 0, v4::NFS4_CONTENT_DATA).sa_status, status);
    EXPECT_EQ(run({putfh(object.handle), read_op({}, 0, 1)}).status, status);
    EXPECT_EQ(run({putfh(object.handle), write_op({}, 0, "x")}).status, status);
  }
}

TEST_F(Nfs4Ranges, are_refused_in_the_pseudo_file_system) {
  const Opened folder{v4::NFS4_OK, {}, walk({"srv"})};
  const Opened file = create("file");
  EXPECT_EQ(allocate(folder, 0, 1), v4::NFS4ERR_WRONG_TYPE);
  EXPECT_EQ(seek(folder, 0, v4::NFS4_CONTENT_DATA).sa_status, v4::NFS4ERR_ISDIR);
  EXPECT_EQ(copy(folder, file).cr_status, v4::NFS4ERR_WRONG_TYPE);
  EXPECT_EQ(clone(file, folder, {}), v4::NFS4ERR_WRONG_TYPE);
}

TEST_F(Nfs4Ranges, need_an_open_of_the_right_kind) {
  const Opened file = create("file");
  const Opened other = create("other");
  write(file, 0, "text");
  const Opened reader = reader_of("file", "a reader");
  EXPECT_EQ(allocate(reader, 0, 10), v4::NFS4ERR_OPENMODE);
  EXPECT_EQ(deallocate(reader, 0, 10), v4::NFS4ERR_OPENMODE);
  EXPECT_EQ(copy(other, reader).cr_status, v4::NFS4ERR_OPENMODE);
  EXPECT_EQ(clone(other, reader, {}), v4::NFS4ERR_OPENMODE);
  EXPECT_EQ(copy(reader, other).cr_status, v4::NFS4_OK);
  EXPECT_EQ(seek(reader, 0, v4::NFS4_CONTENT_DATA).sa_status, v4::NFS4_OK);
  Opened mixed = file;
  mixed.stateid = other.stateid;
  EXPECT_EQ(allocate(mixed, 0, 10), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(deallocate(mixed, 0, 10), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(seek(mixed, 0, v4::NFS4_CONTENT_DATA).sa_status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(copy(mixed, other).cr_status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(clone(other, mixed, {}), v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Ranges, need_the_permission_to_read_or_write) {
  const Opened hers = create("file");
  const Opened other = create("other");
  write(hers, 0, "text");
  as(1000, 1000);
  set_up_session("another client");
  // The special stateids leave the decision to the permissions.
  const Opened file{v4::NFS4_OK, {}, hers.handle};
  const Opened to{v4::NFS4_OK, {}, other.handle};
  EXPECT_EQ(allocate(file, 0, 10), v4::NFS4ERR_ACCESS);
  EXPECT_EQ(deallocate(file, 0, 10), v4::NFS4ERR_ACCESS);
  EXPECT_EQ(copy(file, to).cr_status, v4::NFS4ERR_ACCESS);
  EXPECT_EQ(clone(file, to, {}), v4::NFS4ERR_ACCESS);
}

TEST_F(Nfs4Ranges, are_not_changed_on_a_read_only_export) {
  const Opened file = create("file");
  const Opened fixed{v4::NFS4_OK, {}, walk({"srv", "fixed"})};
  EXPECT_EQ(allocate(fixed, 0, 1), v4::NFS4ERR_ROFS);
  EXPECT_EQ(deallocate(fixed, 0, 1), v4::NFS4ERR_ROFS);
  EXPECT_EQ(copy(file, fixed).cr_status, v4::NFS4ERR_ROFS);
  EXPECT_EQ(clone(fixed, fixed, {}), v4::NFS4ERR_ROFS);
}

TEST_F(Nfs4Ranges, are_cloned_within_one_export) {
  const Opened from = create("from");
  const Opened to = create("to");
  write(from, 0, "0123456789");
  write(to, 0, "abcdefghij");
  ASSERT_EQ(clone(from, to, {2, 5, 3}), v4::NFS4_OK);
  EXPECT_EQ(read(to, 0, 20), "abcde234ij");
  ASSERT_EQ(clone(from, to, {}), v4::NFS4_OK);
  EXPECT_EQ(read(to, 0, 20), "0123456789");
  EXPECT_EQ(clone(from, to, {8, 0, 3}), v4::NFS4ERR_INVAL);
  EXPECT_EQ(clone(from, from, {0, 1, 5}), v4::NFS4ERR_INVAL);
  const Opened elsewhere{v4::NFS4_OK, {}, walk({"srv", "fixed"})};
  EXPECT_EQ(clone(elsewhere, to, {}), v4::NFS4ERR_XDEV);
}

TEST_F(Nfs4Ranges, are_copied_in_order_and_at_once) {
  const Opened from = create("from");
  const Opened to = create("to");
  std::string text;
  for (int i = 0; i < 3; ++i) text += std::string(kMiB, static_cast<char>('a' + i));
  for (std::uint64_t i = 0; i < 3; ++i) write(from, i * kMiB, text.substr(i * kMiB, kMiB));
  const v4::COPY4res results = copy(from, to, {5, 10, 3 * kMiB - 5});
  ASSERT_EQ(results.cr_status, v4::NFS4_OK);
  const v4::COPY4resok& ok = results.cr_resok4();
  EXPECT_TRUE(ok.cr_response.wr_callback_id.empty()) << "it is done";
  EXPECT_EQ(ok.cr_response.wr_count, 3 * kMiB - 5);
  EXPECT_TRUE(ok.cr_requirements.cr_consecutive && ok.cr_requirements.cr_synchronous);
  EXPECT_EQ(read(to, 10, kMiB), text.substr(5, kMiB));
  EXPECT_EQ(read(to, 2 * kMiB + 5, 10 * kMiB), text.substr(2 * kMiB));
}

TEST_F(Nfs4Ranges, are_not_copied_beyond_the_end_of_the_file) {
  const Opened from = create("from");
  const Opened to = create("to");
  write(from, 0, "0123456789");
  EXPECT_EQ(copy(from, to, {8, 0, 3}).cr_status, v4::NFS4ERR_INVAL);
  EXPECT_EQ(copy(from, to, {11, 0, 0}).cr_status, v4::NFS4ERR_INVAL);
  EXPECT_EQ(copy(from, from).cr_status, v4::NFS4ERR_INVAL) << "a file onto itself";
  EXPECT_EQ(read(to, 0, 10), "");
  EXPECT_EQ(copy(from, to, {10, 0, 0}).cr_resok4().cr_response.wr_count, 0u);
  EXPECT_EQ(copy(from, to, {4, 0, 0}).cr_resok4().cr_response.wr_count, 6u);
}

TEST_F(Nfs4Ranges, are_not_copied_from_another_server) {
  const Opened from = create("from");
  const Opened to = create("to");
  write(from, 0, "text");
  v4::COPY4args args = copy_args(from, to, {});
  args.ca_source_server.resize(1);
  args.ca_source_server[0].nl_type = v4::NL4_NAME;
  EXPECT_EQ(copy(from, to, std::move(args)).cr_status, v4::NFS4ERR_OFFLOAD_DENIED);
}

TEST_F(Nfs4Ranges, are_advised_about_without_effect) {
  const Opened reader = [&] {
    create("file");
    return reader_of("file", "a reader");
  }();
  v4::IO_ADVISE4args args{reader.stateid, 0, 100, {1u << v4::IO_ADVISE4_WILLNEED | 1u << 9}};
  const auto advise = [&] {
    return run({putfh(reader.handle), op(v4::OP_IO_ADVISE, &Op::opio_advise, args)});
  };
  const Res results = advise();
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(results.resarray[1].opio_advise().resok4().ior_hints,
            (v4::bitmap4{1u << v4::IO_ADVISE4_NORMAL}));
  args.iaa_stateid.other.fill(std::byte{7});
  EXPECT_EQ(advise().status, v4::NFS4ERR_BAD_STATEID);
}

// A store that takes its time, or cannot copy by itself.
class Nfs4Copies : public Nfs4Ranges {
 protected:
  using When = vfs::testing::Point::When;
  using Called = vfs::testing::Called;

  void serve(std::shared_ptr<vfs::testing::Steps> steps) {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    const auto slow = std::make_shared<vfs::testing::SteppedStore>(store_, std::move(steps));
    STAG_CHECK(exports.add(1, {"/data", slow, open}).ok());
    STAG_CHECK(exports.add(3, {"/other", fixed_store_, open}).ok());
    context_.exports.replace(std::move(exports));
  }
  Opened large(std::uint64_t mib) {
    const Opened file = create("large");
    for (std::uint64_t i = 0; i < mib; ++i)
      write(file, i * kMiB, std::string(kMiB, static_cast<char>('a' + i % 26)));
    return file;
  }
};

TEST_F(Nfs4Copies, pass_through_the_server_where_a_store_cannot_copy) {
  const Opened from = large(2);
  const Opened to = create("to");
  serve(std::make_shared<vfs::testing::FailingSteps>(
      [](vfs::testing::Point point) -> std::optional<vfs::Status> {
        if (point.operation == Called::Copy) return vfs::Status::NotSupported;
        return std::nullopt;
      }));
  EXPECT_EQ(copy(from, to, {0, 0, 2 * kMiB + 1}).cr_status, v4::NFS4ERR_INVAL);
  EXPECT_EQ(read(to, 0, 1), "");
  EXPECT_EQ(copy(from, to, {3, 0, 0}).cr_resok4().cr_response.wr_count, 2 * kMiB - 3);
  EXPECT_EQ(read(to, kMiB - 5, 4), "aabb");
}

TEST_F(Nfs4Copies, go_from_one_export_to_another) {
  const Opened from = large(1);
  serve(std::make_shared<vfs::testing::LaterSteps>(std::vector<int>{1, 0, 2}));
  v4::OPEN4args args = open_args("to", v4::OPEN4_SHARE_ACCESS_BOTH, true);
  const Res opened =
      run({putrootfh(), lookup("other"), op(v4::OP_OPEN, &Op::opopen, args), getfh()});
  ASSERT_EQ(opened.status, v4::NFS4_OK);
  const Opened to{v4::NFS4_OK, opened.resarray[2].opopen().resok4().stateid,
                  opened.resarray[3].opgetfh().resok4().object};
  EXPECT_EQ(copy(from, to).cr_resok4().cr_response.wr_count, kMiB);
  EXPECT_EQ(read(to, kMiB - 2, 10), "aa");
}

TEST_F(Nfs4Copies, return_the_bytes_copied_before_a_failure) {
  const Opened from = large(3);
  const Opened to = create("to");
  auto left = std::make_shared<int>(2);
  serve(std::make_shared<vfs::testing::FailingSteps>(
      [left](vfs::testing::Point point) -> std::optional<vfs::Status> {
        if (point.operation != Called::Copy || point.when != When::Begin) return std::nullopt;
        return (*left)-- > 0 ? std::nullopt : std::optional(vfs::Status::NoSpace);
      }));
  EXPECT_EQ(copy(from, to).cr_resok4().cr_response.wr_count, 2 * kMiB);
  EXPECT_EQ(copy(from, to, {2 * kMiB, 2 * kMiB, 0}).cr_status, v4::NFS4ERR_NOSPC);
}

TEST_F(Nfs4Copies, are_bounded_and_go_on_where_they_ended) {
  const Opened from = create("sparse");
  const Opened to = create("to");
  ASSERT_EQ(allocate(from, 100 * kMiB, 10), v4::NFS4_OK);
  const std::uint64_t first = copy(from, to).cr_resok4().cr_response.wr_count;
  EXPECT_LT(first, 100 * kMiB);
  EXPECT_EQ(copy(from, to, {first, first, 0}).cr_resok4().cr_response.wr_count,
            100 * kMiB + 10 - first);
}

}  // namespace
}  // namespace stag::nfs::nfs4
