// Whole Replies, byte for byte, as RFC 1813 lays them out.
#include <gtest/gtest.h>

#include <string>

#include "testing/nfs/server_fixture.h"
#include "testing/vfs/awaited.h"

namespace stag::nfs {
namespace {

using namespace v3;

vfs::Time fixed_time() {
  return {0x01020304, 5};
}

vfs::memory::Options fixed() {
  vfs::memory::Options options;
  options.instance = 0x1122334455667788;
  options.now = fixed_time;
  return options;
}

class Nfs3Golden : public testing::NfsServerTest {
 protected:
  Nfs3Golden() {
    ExportOptions open;
    open.root_squash = false;
    EXPECT_TRUE(nfs_.add_export("/fixed", fixed_, open).ok());
    root_ = mounted("/fixed");
  }
  // The results of the last Reply as words of eight digits.
  std::string results() const {
    const Buffer bytes = channel_.last_reply.rope().flatten();
    std::string words;
    for (std::size_t at = oncrpc::kReplyHeaderSize; at < bytes.size(); at += 4) {
      char word[16];
      std::snprintf(word, sizeof word, "%08x ", load_be<std::uint32_t>(bytes.data() + at));
      words += word;
    }
    return words;
  }
  static std::string hex(std::uint64_t value) {
    char words[32];
    std::snprintf(words, sizeof words, "%08x %08x ", static_cast<std::uint32_t>(value >> 32),
                  static_cast<std::uint32_t>(value));
    return words;
  }
  // RFC 1813 2.5, fattr3, of an object of root's in the fixed store.
  std::string attributes(std::uint32_t type, std::uint32_t mode, std::uint32_t links,
                         std::uint64_t size, const vfs::Attributes& numbers) const {
    const std::string time = "01020304 00000005 ";
    char head[64];
    std::snprintf(head, sizeof head, "%08x %08x %08x ", type, mode, links);
    return head + std::string("00000000 00000000 ") + hex(size) + hex(numbers.used) +
           "00000000 00000000 " + hex(numbers.file_system_id) + hex(numbers.file_id) + time + time +
           time;
  }
  vfs::Attributes numbers(std::string_view name) {
    const vfs::Credentials who{0, 0, {}};
    const vfs::Handle root = fixed_->root();
    return (**loop_.run(testing::awaited(fixed_->lookup({loop_, who}, root, name))))
        .node.attributes;
  }

  std::shared_ptr<vfs::MemoryFileSystem> fixed_ = std::make_shared<vfs::MemoryFileSystem>(fixed());
  nfs_fh3 root_;
};

TEST_F(Nfs3Golden, GETATTR) {
  call<NFSPROC3_GETATTR>({root_});
  EXPECT_EQ(results(), "00000000 " + attributes(NF3DIR, 01777, 2, numbers(".").size, numbers(".")));
}

TEST_F(Nfs3Golden, LOOKUP_of_nothing) {
  call<NFSPROC3_LOOKUP>({{root_, "none"}});
  EXPECT_EQ(results(),
            "00000002 00000001 " + attributes(NF3DIR, 01777, 2, numbers(".").size, numbers(".")));
}

TEST_F(Nfs3Golden, READ) {
  const nfs_fh3 file = create(root_, "file", 0640);
  ASSERT_EQ(write(file, 0, "hello").status, NFS3_OK);
  call<NFSPROC3_READ>({file, 0, 100});
  EXPECT_EQ(results(), "00000000 00000001 " + attributes(NF3REG, 0640, 1, 5, numbers("file")) +
                           "00000005 00000001 00000005 68656c6c 6f000000 ");
}

TEST_F(Nfs3Golden, WRITE) {
  const nfs_fh3 file = create(root_, "file", 0640);
  write(file, 3, "xyz", UNSTABLE);
  EXPECT_EQ(results(),
            // before: size, mtime, ctime; after; count, committed, verifier (start number 7)
            "00000000 00000001 00000000 00000000 01020304 00000005 01020304 00000005 00000001 " +
                attributes(NF3REG, 0640, 1, 6, numbers("file")) +
                "00000003 00000002 00000000 00000007 ");
}

TEST_F(Nfs3Golden, READDIR) {
  create(root_, "abcde");
  const auto listed = call<NFSPROC3_READDIR>({root_, 0, {}, 4096});
  const auto& entries = listed.resok().reply.entries;
  ASSERT_EQ(entries.size(), 3u);
  const cookieverf3& verifier = listed.resok().cookieverf;
  EXPECT_EQ(results(), "00000000 00000001 " +
                           attributes(NF3DIR, 01777, 2, numbers(".").size, numbers(".")) +
                           hex(load_be<std::uint64_t>(verifier.data())) +  //
                           "00000001 " + hex(numbers(".").file_id) + "00000001 2e000000 " +
                           hex(entries[0].cookie) + "00000001 " + hex(numbers(".").file_id) +
                           "00000002 2e2e0000 " + hex(entries[1].cookie) + "00000001 " +
                           hex(numbers("abcde").file_id) + "00000005 61626364 65000000 " +
                           hex(entries[2].cookie) + "00000000 00000001 ");
}

}  // namespace
}  // namespace stag::nfs
