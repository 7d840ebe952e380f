// The client of version 4 with a server that lies: our own server answers, and the input says which
// words of its answers are others, which end early and which are bytes of the input.
#include <algorithm>

#include "input.h"
#include "nfs/proto/nfs4.h"
#include "testing/nfs/nfs4_client_world.h"

using namespace stag;

namespace {

enum Kind : std::uint8_t { kHonest, kWord, kShort, kBytes, kKinds };

std::vector<std::byte> altered(fuzz::Input& input, Bytes honest) {
  std::vector<std::byte> bytes(honest.begin(), honest.end());
  // The RPC header stays: its decoder has a target of its own.
  constexpr std::size_t kHeader = 24;
  const std::size_t words = bytes.size() / 4;
  switch (input.octet() % kKinds) {
    case kWord: {
      const std::size_t at = input.octet() | std::size_t{input.octet()} << 8;
      const std::uint32_t word = input.octet() | std::uint32_t{input.octet()} << 24;
      if (words > kHeader / 4)
        store_be(bytes.data() + kHeader + 4 * (at % (words - kHeader / 4)), word);
      break;
    }
    case kShort:
      bytes.resize(kHeader + std::min<std::size_t>(bytes.size() - kHeader, input.octet() * 4u));
      break;
    case kBytes: {
      const Bytes own = input.take(input.octet() / 4 * 4);
      bytes.resize(kHeader);
      bytes.insert(bytes.end(), own.begin(), own.end());
      break;
    }
    default:
      break;
  }
  return bytes;
}

class LyingChannel final : public rpc::Channel {
 public:
  LyingChannel(rpc::Channel& inner, fuzz::Input& input)
      : Channel(1), inner_(inner), input_(input) {}

  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    auto reply = co_await inner_.call(message);
    if (reply && !input_.empty())
      reply->payload = Buffer::copy_of(altered(input_, reply->payload.bytes()));
    co_return std::move(reply);
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return inner_.loop(); }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }

 private:
  rpc::Channel& inner_;
  fuzz::Input& input_;
};

using nfs::client::FileSystem;
using nfs::client::Handle;

Task<Ok> live(FileSystem& files, fuzz::Input& input) {
  Handle at = files.root();
  std::array<std::byte, 5000> memory{};
  for (int steps = 0; steps < 12; ++steps) {
    switch (input.octet() % 8) {
      case 0: {
        const auto made = co_await files.create(at, "file", {.mode = 0644});
        if (made) static_cast<void>(co_await files.write_from(made->handle, 0, memory));
        break;
      }
      case 1: {
        const auto found = co_await files.walk("data/file");
        if (found) static_cast<void>(co_await files.read_into(found->handle, 0, memory));
        break;
      }
      case 2: {
        nfs::client::Listing listing = files.list(at, {}, 100);
        for (bool more = true; more;) {
          const auto batch = co_await listing.next();
          more = batch && !batch->empty();
        }
        break;
      }
      case 3:
        static_cast<void>(co_await files.symlink(at, "link", "data"));
        static_cast<void>(co_await files.walk("link/link/file"));
        break;
      case 4:
        static_cast<void>(co_await files.info());
        static_cast<void>(co_await files.usage());
        static_cast<void>(co_await files.name_limits());
        break;
      case 5:
        static_cast<void>(co_await files.remove(at, "file"));
        break;
      case 6:
        static_cast<void>(co_await files.rename(at, "link", at, "file"));
        break;
      default: {
        const auto found = co_await files.walk("data");
        if (found) at = found->handle;
      }
    }
  }
  co_return Ok{};
}

Task<Ok> closed(nfs::client::nfs4::Nfs4& protocol) {
  co_await protocol.close();
  co_return Ok{};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  stag::testing::ManualLoop loop;
  stag::testing::Nfs4Instance server(loop, std::make_shared<vfs::MemoryFileSystem>());
  nfs::client::FileSystemOptions options;
  options.calls.credentials = rpc::Credentials::sys("fuzz", 0, 0);
  options.calls.minor = input.octet() % 3;
  options.calls.jukebox_for = std::chrono::seconds(1);
  LyingChannel channel(server.channel, input);
  auto protocol = loop.run(nfs::client::nfs4::Nfs4::connect(channel, options.calls));
  STAG_CHECK(protocol.has_value());
  if (!*protocol) return 0;
  auto root = loop.run((**protocol)->root({"find the root", {}}));
  STAG_CHECK(root.has_value());
  if (!*root) return 0;
  FileSystem files(**protocol, (*root)->handle, "/", options);
  STAG_CHECK(loop.run(live(files, input)).has_value());
  STAG_CHECK(loop.run(closed(***protocol)).has_value());
  return 0;
}
