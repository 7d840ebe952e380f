// The operations of a COMPOUND as they are decoded: what is cut or malformed is refused where it
// stands.
#include "nfs/v4/operation_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nfs/v4/ops/direct_codecs.h"

namespace stag::nfs::nfs4 {
namespace {

constexpr std::uint32_t kMostListed = 64;
constexpr std::size_t kListHead = 12;  // tag, minor version, count

class EncodedArguments {
 public:
  void begin(std::uint32_t count) { encoder_.u32s(0, 1, count); }
  void sequence(std::uint32_t cachethis) {
    encoder_.u32(v4::OP_SEQUENCE);
    encoder_.integers(std::uint64_t{0x0102030405060708}, std::uint64_t{0x1112131415161718});
    encoder_.u32s(21, 22, 23, cachethis);
  }
  void putfh(std::size_t length) {
    encoder_.u32(v4::OP_PUTFH);
    encoder_.string(xdr::kNoItem, std::string(length, 'h'));
  }
  void read() {
    put_by(v4::OP_READ);
    encoder_.u32(4096);
  }
  void write(std::uint32_t stable) {
    put_by(v4::OP_WRITE);
    encoder_.u32(stable);
    encoder_.string(xdr::kNoItem, "data");
  }
  void getattr() { encoder_.u32s(v4::OP_GETATTR, 2, 3, 4); }
  void lookup(const std::string& name) {
    encoder_.u32(v4::OP_LOOKUP);
    encoder_.string(xdr::kNoItem, name);
  }
  std::size_t size() const { return encoder_.position(); }
  Buffer take() { return std::move(encoder_).finish().rope().flatten(); }

 private:
  // A stateid, and where in the file.
  void put_by(v4::nfs_opnum4 number) {
    encoder_.u32s(number, 31, 0x01020304, 0x05060708, 0x090a0b0c);
    encoder_.u64(std::uint64_t{1} << 33 | 7);
  }

  xdr::Encoder encoder_;
};

TEST(OperationList, refuses_the_operation_at_which_the_arguments_are_cut) {
  EncodedArguments arguments;
  arguments.begin(3);
  std::vector<std::size_t> ends;
  arguments.sequence(1);
  ends.push_back(arguments.size());
  arguments.putfh(29);
  ends.push_back(arguments.size());
  arguments.getattr();
  ends.push_back(arguments.size());
  const Buffer whole = arguments.take();
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    OperationList list;
    xdr::Decoder decoder(Buffer::copy_of(whole.bytes().first(length)));
    const bool read = list.decode(decoder, kMostListed);
    // A count that the rest cannot hold is refused with the whole.
    ASSERT_EQ(read, length >= kListHead + 12) << length;
    if (!read) continue;
    const auto done = static_cast<std::size_t>(
        std::ranges::count_if(ends, [&](std::size_t end) { return end <= length; }));
    ASSERT_EQ(list.entries().size(), std::min<std::size_t>(done + 1, 3)) << length;
    for (std::size_t i = 0; i < list.entries().size(); ++i) {
      const auto& entry = list.entries()[i];
      EXPECT_EQ(entry.refusal, i < done ? v4::NFS4_OK : v4::NFS4ERR_BADXDR) << length;
      EXPECT_EQ(entry.arguments != nullptr, i < done) << length;
    }
  }
}

TEST(OperationList, has_the_arguments_of_SEQUENCE_word_by_word) {
  for (const std::uint32_t cachethis : {0u, 1u}) {
    EncodedArguments arguments;
    arguments.begin(1);
    arguments.sequence(cachethis);
    OperationList list;
    xdr::Decoder decoder(arguments.take());
    ASSERT_TRUE(list.decode(decoder, kMostListed));
    ASSERT_EQ(list.entries()[0].refusal, v4::NFS4_OK);
    const auto& args = *static_cast<const SequenceArguments*>(list.entries()[0].arguments);
    EXPECT_EQ(load_be<std::uint64_t>(args.sa_sessionid.data()), 0x0102030405060708u);
    EXPECT_EQ(load_be<std::uint64_t>(args.sa_sessionid.data() + 8), 0x1112131415161718u);
    EXPECT_EQ(args.sa_sequenceid, 21u);
    EXPECT_EQ(args.sa_slotid, 22u);
    EXPECT_EQ(args.sa_highest_slotid, 23u);
    EXPECT_EQ(args.sa_cachethis, cachethis == 1);
  }
}

TEST(OperationList, refuses_a_SEQUENCE_whose_last_word_is_no_boolean) {
  EncodedArguments arguments;
  arguments.begin(1);
  arguments.sequence(2);
  OperationList list;
  xdr::Decoder decoder(arguments.take());
  ASSERT_TRUE(list.decode(decoder, kMostListed));
  EXPECT_EQ(list.entries()[0].refusal, v4::NFS4ERR_BADXDR);
}

v4::stateid4 stateid_of_bytes_1_to_12() {
  v4::stateid4 stateid;
  stateid.seqid = 31;
  for (std::size_t i = 0; i < stateid.other.size(); ++i)
    stateid.other[i] = static_cast<std::byte>(i + 1);
  return stateid;
}

TEST(OperationList, has_the_arguments_of_READ_and_WRITE_word_by_word) {
  EncodedArguments arguments;
  arguments.begin(2);
  arguments.read();
  arguments.write(v4::FILE_SYNC4);
  OperationList list;
  xdr::Decoder decoder(arguments.take());
  ASSERT_TRUE(list.decode(decoder, kMostListed));
  ASSERT_EQ(list.entries().size(), 2u);
  ASSERT_EQ(list.entries()[0].refusal, v4::NFS4_OK);
  const auto& read = *static_cast<const ReadArguments*>(list.entries()[0].arguments);
  EXPECT_EQ(read.stateid, stateid_of_bytes_1_to_12());
  EXPECT_EQ(read.offset, std::uint64_t{1} << 33 | 7);
  EXPECT_EQ(read.count, 4096u);
  ASSERT_EQ(list.entries()[1].refusal, v4::NFS4_OK);
  const auto& write = *static_cast<const WriteArguments*>(list.entries()[1].arguments);
  EXPECT_EQ(write.stateid, stateid_of_bytes_1_to_12());
  EXPECT_EQ(write.offset, std::uint64_t{1} << 33 | 7);
  EXPECT_EQ(write.stable, v4::FILE_SYNC4);
  EXPECT_EQ(text_of(write.data.flatten().bytes()), "data");
}

TEST(OperationList, refuses_a_WRITE_of_a_stability_that_there_is_not) {
  EncodedArguments arguments;
  arguments.begin(1);
  arguments.write(v4::FILE_SYNC4 + 1);
  OperationList list;
  xdr::Decoder decoder(arguments.take());
  ASSERT_TRUE(list.decode(decoder, kMostListed));
  EXPECT_EQ(list.entries()[0].refusal, v4::NFS4ERR_BADXDR);
}

TEST(OperationList, takes_filehandles_of_128_bytes_and_no_longer_ones) {
  EncodedArguments arguments;
  arguments.begin(2);
  arguments.putfh(v4::NFS4_FHSIZE);
  arguments.putfh(v4::NFS4_FHSIZE + 1);
  OperationList list;
  xdr::Decoder decoder(arguments.take());
  ASSERT_TRUE(list.decode(decoder, kMostListed));
  ASSERT_EQ(list.entries().size(), 2u);
  EXPECT_EQ(list.entries()[0].refusal, v4::NFS4_OK);
  const auto& args = *static_cast<const PutfhArguments*>(list.entries()[0].arguments);
  EXPECT_EQ(text_of(args.object), std::string(v4::NFS4_FHSIZE, 'h'));
  EXPECT_EQ(list.entries()[1].refusal, v4::NFS4ERR_BADXDR);
}

TEST(OperationList, has_room_for_more_arguments_than_lie_in_it) {
  EncodedArguments arguments;
  arguments.begin(kMostListed);
  const auto name_of = [](std::uint32_t i) { return std::string(40, 'n') + std::to_string(i); };
  for (std::uint32_t i = 0; i < kMostListed; ++i) arguments.lookup(name_of(i));
  OperationList list;
  xdr::Decoder decoder(arguments.take());
  ASSERT_TRUE(list.decode(decoder, kMostListed));
  ASSERT_EQ(list.entries().size(), kMostListed);
  for (std::uint32_t i = 0; i < kMostListed; ++i)
    EXPECT_EQ(static_cast<const v4::LOOKUP4args*>(list.entries()[i].arguments)->objname,
              name_of(i));
}

}  // namespace
}  // namespace stag::nfs::nfs4
