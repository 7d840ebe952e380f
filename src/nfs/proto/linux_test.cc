// What Linux says, through our codecs and back: every byte must be there again.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "nfs/proto/nfs3.h"
#include "testing/proves.h"

namespace stag::nfs {
namespace {

using namespace v3;

struct Record {
  bool is_call = false;
  std::string procedure;
  std::uint32_t position = 0;  // of the item that travelled by chunk
  std::uint32_t length = 0;    // 0: none did
  std::string bytes;
};

std::vector<Record> records() {
  std::ifstream file("tests/golden/nfs3/linux.hex");
  EXPECT_TRUE(file.good()) << "run in the project's folder";
  std::vector<Record> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      Record record;
      std::string kind, moved;
      std::istringstream(line) >> kind >> record.procedure >> moved >> record.position >>
          record.length;
      record.is_call = kind == "call";
      all.push_back(record);
      continue;
    }
    for (std::size_t i = 2; i + 1 < line.size(); i += 2)
      all.back().bytes += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
  }
  return all;
}

// Stands for the chunk of a record: bytes that no capture kept, at the place where they belong.
class Chunk final : public xdr::ItemSource {
 public:
  explicit Chunk(const Record& record) : record_(record) {}
  std::optional<Rope> take(xdr::ItemId, std::uint32_t position, std::uint32_t length) override {
    if (record_.length == 0 || position != record_.position) return std::nullopt;
    taken = true;
    return Rope::copy_of(bytes_of(std::string(length, 'c')));
  }
  bool taken = false;

 private:
  const Record& record_;
};

constexpr xdr::ItemId kEligible[] = {item::READ3resok_data, item::READLINK3resok_data,
                                     item::WRITE3args_data, item::symlinkdata3_symlink_data};

Buffer inline_part(const xdr::Stream& stream, const Record& record) {
  std::vector<std::uint32_t> moved;
  for (std::uint32_t i = 0; i < stream.items().size(); ++i)
    if (record.length != 0 && stream.items()[i].position == record.position) moved.push_back(i);
  return stream.without(moved).flatten();
}

template <class P>
void repeat(const Record& record) {
  Chunk chunk(record);
  xdr::Decoder decoder(Buffer::copy_of(bytes_of(record.bytes)), &chunk);
  xdr::Encoder encoder(kEligible);
  bool decoded = false;
  if (record.is_call) {
    typename P::Args args{};
    decoded = P::decode_args(decoder, args);
    P::encode_args(encoder, args);
  } else {
    typename P::Results results{};
    decoded = P::decode_results(decoder, results);
    P::encode_results(encoder, results);
  }
  EXPECT_TRUE(decoded && decoder.finish().ok()) << static_cast<int>(decoder.error());
  EXPECT_EQ(chunk.taken, record.length != 0);
  EXPECT_EQ(text_of(inline_part(std::move(encoder).finish(), record).bytes()), record.bytes);
}

const std::map<std::string, void (*)(const Record&)> kProcedures = {
    {"GETATTR", repeat<NFSPROC3_GETATTR>},
    {"SETATTR", repeat<NFSPROC3_SETATTR>},
    {"LOOKUP", repeat<NFSPROC3_LOOKUP>},
    {"ACCESS", repeat<NFSPROC3_ACCESS>},
    {"READLINK", repeat<NFSPROC3_READLINK>},
    {"READ", repeat<NFSPROC3_READ>},
    {"WRITE", repeat<NFSPROC3_WRITE>},
    {"CREATE", repeat<NFSPROC3_CREATE>},
    {"MKDIR", repeat<NFSPROC3_MKDIR>},
    {"SYMLINK", repeat<NFSPROC3_SYMLINK>},
    {"REMOVE", repeat<NFSPROC3_REMOVE>},
    {"RMDIR", repeat<NFSPROC3_RMDIR>},
    {"RENAME", repeat<NFSPROC3_RENAME>},
    {"LINK", repeat<NFSPROC3_LINK>},
    {"READDIRPLUS", repeat<NFSPROC3_READDIRPLUS>},
    {"FSSTAT", repeat<NFSPROC3_FSSTAT>},
    {"FSINFO", repeat<NFSPROC3_FSINFO>},
    {"PATHCONF", repeat<NFSPROC3_PATHCONF>},
    {"COMMIT", repeat<NFSPROC3_COMMIT>},
};

TEST(LinuxCapture, is_understood_and_repeated_byte_for_byte) {
  PROVES("R8267-4-a", "R8267-4-b", "R8267-4-c");
  std::map<std::string, int> seen;
  for (const Record& record : records()) {
    SCOPED_TRACE((record.is_call ? "call " : "reply ") + record.procedure);
    const auto found = kProcedures.find(record.procedure);
    ASSERT_NE(found, kProcedures.end());
    found->second(record);
    ++seen[(record.is_call ? "call " : "reply ") + record.procedure];
  }
  // The capture holds both sides of all of them.
  EXPECT_EQ(seen.size(), 2 * kProcedures.size());
}

TEST(LinuxCapture, is_refused_when_cut_anywhere) {
  for (const Record& record : records()) {
    if (record.procedure != "SETATTR" && record.procedure != "LOOKUP") continue;
    for (std::size_t length = 0; length < record.bytes.size(); ++length) {
      xdr::Decoder decoder(Buffer::copy_of(bytes_of(record.bytes.substr(0, length))));
      SETATTR3args setattr;
      LOOKUP3args lookup;
      SETATTR3res set;
      LOOKUP3res looked;
      const bool is_set = record.procedure == "SETATTR";
      const bool decoded = record.is_call
                               ? (is_set ? decode(decoder, setattr) : decode(decoder, lookup))
                               : (is_set ? decode(decoder, set) : decode(decoder, looked));
      EXPECT_FALSE(decoded) << record.procedure << " " << length;
    }
  }
}

}  // namespace
}  // namespace stag::nfs
