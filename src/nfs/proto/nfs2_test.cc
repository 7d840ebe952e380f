// Messages of NFS version 2 and MOUNT version 1, word by word as RFC 1094 lays them out: each
// decodes to what it says, encodes to the same bytes, and is refused when it ends anywhere earlier.
#include "nfs/proto/nfs2.h"

#include <gtest/gtest.h>

#include <string>

#include "nfs/proto/mount3.h"

namespace stag::nfs {
namespace {

using namespace v2;

// Words of eight hexadecimal digits; what is no digit separates.
Buffer bytes_from(std::string_view hex) {
  std::string bytes, digits;
  for (const char c : hex) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return Buffer::copy_of(bytes_of(bytes));
}

struct Codec {
  template <class P>
  static auto args() {
    return std::pair(&P::decode_args, &P::encode_args);
  }
  template <class P>
  static auto results() {
    return std::pair(&P::decode_results, &P::encode_results);
  }
};

// The value of a whole message.
template <class T, class Codecs>
T golden(Codecs codec, std::string_view hex) {
  const Buffer whole = bytes_from(hex);
  T value{};
  xdr::Decoder decoder(whole);
  EXPECT_TRUE(codec.first(decoder, value) && decoder.remaining() == 0);
  xdr::Encoder encoder;
  codec.second(encoder, value);
  const xdr::Stream stream = std::move(encoder).finish();
  EXPECT_TRUE(stream.ok());
  EXPECT_EQ(stream.rope(), Rope(whole));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    T cut{};
    xdr::Decoder shorter(Buffer::copy_of(whole.bytes().first(length)));
    EXPECT_FALSE(codec.first(shorter, cut)) << length;
  }
  return value;
}

const std::string kHandle =
    "00010203 04050607 08090a0b 0c0d0e0f 10111213 14151617 18191a1b 1c1d1e1f ";
// type mode nlink uid gid size blocksize rdev blocks fsid fileid atime mtime ctime
const std::string kAttributes =
    "00000001 000081a4 00000002 00000003 00000004 00000005 00000200 00000000 00000008 00000006 "
    "00000007 00000010 00000011 00000020 00000021 00000030 00000031 ";
const std::string kKept =
    "ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff ";

fhandle handle() {
  fhandle handle{};
  for (std::size_t i = 0; i < handle.size(); ++i) handle[i] = static_cast<std::byte>(i);
  return handle;
}

TEST(Nfs2Message, encodes_attributes) {
  const auto res = golden<attrstat>(Codec::results<NFSPROC_GETATTR>(), "00000000 " + kAttributes);
  ASSERT_EQ(res.status, NFS_OK);
  const fattr& attributes = res.attributes();
  EXPECT_EQ(attributes.type, NFREG);
  EXPECT_EQ(attributes.mode, 0100644u);
  EXPECT_EQ(attributes.size, 5u);
  EXPECT_EQ(attributes.blocks, 8u);
  EXPECT_EQ(attributes.fileid, 7u);
  EXPECT_EQ(attributes.ctime, (timeval{0x30, 0x31}));
  EXPECT_EQ(golden<attrstat>(Codec::results<NFSPROC_GETATTR>(), "00000046").status, NFSERR_STALE);
  const auto args = golden<sattrargs>(Codec::args<NFSPROC_SETATTR>(), kHandle + kKept);
  EXPECT_EQ(args.file, handle());
  EXPECT_EQ(args.attributes.mtime.useconds, 0xffffffffu);
}

TEST(Nfs2Message, encodes_names) {
  const std::string name = "00000003 61626300 ";
  EXPECT_EQ(golden<diropargs>(Codec::args<NFSPROC_LOOKUP>(), kHandle + name).name, "abc");
  const auto found =
      golden<diropres>(Codec::results<NFSPROC_LOOKUP>(), "00000000 " + kHandle + kAttributes);
  EXPECT_EQ(found.diropok().file, handle());
  EXPECT_EQ(found.diropok().attributes.nlink, 2u);
  const auto create = golden<createargs>(Codec::args<NFSPROC_CREATE>(), kHandle + name + kKept);
  EXPECT_EQ(create.where.name, "abc");
  const auto rename = golden<renameargs>(Codec::args<NFSPROC_RENAME>(),
                                         kHandle + name + kHandle + "00000001 78000000");
  EXPECT_EQ(rename.to.name, "x");
  const auto link = golden<linkargs>(Codec::args<NFSPROC_LINK>(), kHandle + kHandle + name);
  EXPECT_EQ(link.to.name, "abc");
  const auto symlink = golden<symlinkargs>(Codec::args<NFSPROC_SYMLINK>(),
                                           kHandle + name + "00000002 2f740000 " + kKept);
  EXPECT_EQ(symlink.to, "/t");
  EXPECT_EQ(golden<nfsstat>(Codec::results<NFSPROC_REMOVE>(), "00000002"), NFSERR_NOENT);
  EXPECT_EQ(golden<readlinkres>(Codec::results<NFSPROC_READLINK>(), "00000000 00000002 2f740000")
                .link()
                .data,
            "/t");
}

TEST(Nfs2Message, encodes_data) {
  const auto read =
      golden<readargs>(Codec::args<NFSPROC_READ>(), kHandle + "00001000 00002000 00000000");
  EXPECT_EQ(read.offset, 0x1000u);
  EXPECT_EQ(read.count, 0x2000u);
  const auto data = golden<readres>(Codec::results<NFSPROC_READ>(),
                                    "00000000 " + kAttributes + "00000005 68656c6c 6f000000");
  EXPECT_EQ(text_of(data.reply().data.flatten().bytes()), "hello");
  const auto write =
      golden<writeargs>(Codec::args<NFSPROC_WRITE>(),
                        kHandle + "00000001 00001000 00000002 00000005 68656c6c 6f000000");
  EXPECT_EQ(write.offset, 0x1000u);
  EXPECT_EQ(text_of(write.data.flatten().bytes()), "hello");
}

TEST(Nfs2Message, encodes_lists_and_facts) {
  const auto args =
      golden<readdirargs>(Codec::args<NFSPROC_READDIR>(), kHandle + "80000001 00001000");
  EXPECT_EQ(load_be<std::uint32_t>(args.cookie.data()), 0x80000001u);
  const auto list = golden<readdirres>(Codec::results<NFSPROC_READDIR>(),
                                       "00000000 00000001 00000007 00000001 2e000000 00000001 "
                                       "00000001 00000008 00000003 61626300 00000009 "
                                       "00000000 00000001");
  ASSERT_EQ(list.readdirok().entries.size(), 2u);
  EXPECT_EQ(list.readdirok().entries[1].name, "abc");
  EXPECT_EQ(list.readdirok().entries[1].fileid, 8u);
  EXPECT_TRUE(list.readdirok().eof);
  const auto stat = golden<statfsres>(Codec::results<NFSPROC_STATFS>(),
                                      "00000000 00002000 00001000 00000003 00000002 00000001");
  EXPECT_EQ(stat.info().tsize, 8192u);
  EXPECT_EQ(stat.info().bavail, 1u);
}

TEST(Nfs2Message, encodes_MOUNT_version_1) {
  using namespace mount3;
  const auto res = golden<fhstatus>(Codec::results<MOUNTPROC1_MNT>(), "00000000 " + kHandle);
  EXPECT_EQ(res.directory(), handle());
  EXPECT_EQ(golden<fhstatus>(Codec::results<MOUNTPROC1_MNT>(), "0000000d").status, 13u);
  const auto facts = golden<ppathcnf>(Codec::results<MOUNTPROC2_PATHCONF>(),
                                      "00000001 00000002 00000003 000000ff 00000005 00000006 "
                                      "00000007 00000008 00000009 0000000a");
  EXPECT_EQ(facts.pc_name_max, 255);
}

TEST(Nfs2Message, is_refused_with_more_than_the_protocol_allows) {
  const auto decodes = [](auto decode, auto value, const std::string& hex) {
    xdr::Decoder decoder(bytes_from(hex));
    return decode(decoder, value);
  };
  std::string name = "00000100 ", text = "00000401 ", data = "00002001 ";
  for (int i = 0; i < 256 / 4; ++i) name += "61616161 ";
  for (int i = 0; i < 1028 / 4; ++i) text += "61616161 ";
  for (int i = 0; i < 8196 / 4; ++i) data += "61616161 ";
  EXPECT_FALSE(decodes(&NFSPROC_LOOKUP::decode_args, diropargs{}, kHandle + name));
  EXPECT_FALSE(decodes(&NFSPROC_READLINK::decode_results, readlinkres{}, "00000000 " + text));
  EXPECT_FALSE(decodes(&NFSPROC_READ::decode_results, readres{}, "00000000 " + kAttributes + data));
  EXPECT_FALSE(decodes(&NFSPROC_REMOVE::decode_results, nfsstat{}, "00000003"));
}

}  // namespace
}  // namespace stag::nfs
