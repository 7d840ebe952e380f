// The client of version 4 with a server that lies: our own server answers, and the input says which
// words of its answers are others, which end early and which are bytes of the input. What it calls
// back for is true: recalls, for another client that writes, and ends of copies.
#include <algorithm>
#include <deque>

#include "input.h"
#include "nfs/client/v4/callback_service.h"
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
    if (reply && lies && !input_.empty())
      reply->payload = Buffer::copy_of(altered(input_, reply->payload.bytes()));
    co_return std::move(reply);
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return inner_.loop(); }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }

  bool lies = true;

 private:
  rpc::Channel& inner_;
  fuzz::Input& input_;
};

using nfs::client::FileSystem;
using nfs::client::FileSystemOptions;
using nfs::client::Handle;
using nfs::client::Node;
using nfs::client::nfs4::Nfs4;
using stag::testing::LoopbackChannel;

// Server, client and another client, which the server is honest to.
class World {
 public:
  explicit World(fuzz::Input& input) : input_(input) {
    const std::uint8_t choice = input.octet();
    options_.calls.credentials = rpc::Credentials::sys("fuzz", 0, 0);
    options_.calls.minor = choice % 4 % 3;
    options_.calls.jukebox_for = std::chrono::seconds(1);
    if (options_.calls.minor != 0 && (choice & 4) != 0) start_callbacks();
    other_ = *run(Nfs4::connect(honest_, options_.calls));
    others_.emplace(other_, run(other_->root({"find the root", {}}))->handle, "/", options_);
    const Handle data = run(others_->walk("data"))->handle;
    file_ = run(others_->create(data, "kept", {.mode = 0666}))->handle;
    STAG_CHECK(run(others_->write_from(file_, 0, std::array<std::byte, 5000>{})).ok());
    options_.calls.delegations = options_.calls.offloads = (choice & 4) != 0;
    channel_.lies = (choice & 8) == 0;
    client_ = connect();
    channel_.lies = true;
  }
  ~World() {
    files_.reset();
    if (client_ != nullptr) STAG_CHECK(loop_.run(closed(*client_)).has_value());
    client_.reset();
    STAG_CHECK(loop_.run(closed(*other_)).has_value());
    if (reverse_ != nullptr) server_.nfs4.stop_callbacks();
    loop_.drain();
  }

  void live() {
    if (files_) STAG_CHECK(loop_.run(steps()).has_value());
  }

 private:
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result = loop_.run(std::move(task));
    STAG_CHECK(result.has_value());
    return *std::move(result);
  }
  static Task<Ok> closed(Nfs4& protocol) {
    co_await protocol.close();
    co_return Ok{};
  }
  void start_callbacks() {
    server_.nfs4.start_callbacks(loop_);
    reverse_ = std::make_shared<LoopbackChannel>(loop_, service_.service());
    server_.channel.origin().reverse = reverse_;
    server_.channel.origin().connection = std::make_shared<rpc::Connection>();
  }
  std::shared_ptr<Nfs4> connect() {
    nfs::client::nfs4::Callbacks callbacks;
    if (reverse_ != nullptr) callbacks.sessions = &service_;
    auto protocol = run(Nfs4::connect(channel_, options_.calls, callbacks));
    if (!protocol) return nullptr;
    auto root = run((*protocol)->root({"find the root", {}}));
    if (root) files_.emplace(*protocol, root->handle, "/", options_);
    return *protocol;
  }

  Task<Ok> steps() {
    at_ = files_->root();
    for (int steps = 0; steps < 16; ++steps) {
      const std::uint8_t choice = input_.octet();
      if (choice % 16 < 8)
        co_await by_name(choice % 16);
      else
        co_await by_open(choice % 16, choice / 16);
    }
    co_return Ok{};
  }
  Task<void> by_name(std::uint8_t step);
  Task<void> by_open(std::uint8_t step, std::uint8_t how);
  Task<void> list();
  Task<void> lock(std::uint8_t how);
  Task<void> copy(std::uint8_t how);
  Task<void> name_values(std::uint8_t how);
  Task<void> other_writes();

  fuzz::Input& input_;
  stag::testing::ManualLoop loop_;
  stag::testing::Nfs4Instance server_{loop_, std::make_shared<vfs::MemoryFileSystem>()};
  LyingChannel channel_{server_.channel, input_};
  LoopbackChannel honest_{loop_, server_.server, {"192.0.2.2", 700}};
  nfs::client::nfs4::CallbackService service_;
  std::shared_ptr<LoopbackChannel> reverse_;
  FileSystemOptions options_;
  std::shared_ptr<Nfs4> client_, other_;
  std::optional<FileSystem> files_, others_;
  Handle at_, file_;
  std::deque<nfs::client::File> open_;
  std::array<std::byte, 5000> memory_{};
};

Task<void> World::by_name(std::uint8_t step) {
  switch (step) {
    case 0: {
      const auto made = co_await files_->create(at_, "file", {.mode = 0644});
      if (made) static_cast<void>(co_await files_->write_from(made->handle, 0, memory_));
      break;
    }
    case 1: {
      const auto found = co_await files_->walk("data/file");
      if (found) static_cast<void>(co_await files_->read_into(found->handle, 0, memory_));
      break;
    }
    case 2:
      co_return co_await list();
    case 3:
      static_cast<void>(co_await files_->symlink(at_, "link", "data"));
      static_cast<void>(co_await files_->walk("link/link/file"));
      break;
    case 4:
      static_cast<void>(co_await files_->info());
      static_cast<void>(co_await files_->usage());
      static_cast<void>(co_await files_->name_limits());
      break;
    case 5:
      static_cast<void>(co_await files_->remove(at_, "file"));
      break;
    case 6:
      static_cast<void>(co_await files_->rename(at_, "link", at_, "file"));
      break;
    default: {
      const auto found = co_await files_->walk("data");
      if (found) at_ = found->handle;
    }
  }
}

Task<void> World::list() {
  nfs::client::Listing listing = files_->list(at_, {}, 100);
  for (bool more = true; more;) {
    const auto batch = co_await listing.next();
    more = batch && !batch->empty();
  }
}

Task<void> World::by_open(std::uint8_t step, std::uint8_t how) {
  const nfs::client::File file = open_.empty() ? nfs::client::File(file_) : open_.front();
  switch (step) {
    case 8: {
      const std::uint32_t asked = 1u + (how & 1u) * nfs::client::access::kModify;
      const auto found = co_await files_->walk("data/kept");
      if (!found || open_.size() == 4) break;
      const auto opened = co_await files_->open(found->handle, asked);
      if (opened) open_.push_back(opened->file);
      break;
    }
    case 9:
      if (open_.empty()) break;
      open_.pop_front();
      static_cast<void>(co_await files_->close(file));
      break;
    case 10:
      static_cast<void>(co_await files_->read(file, how, memory_));
      static_cast<void>(co_await files_->write(file, how, bytes_of("written")));
      static_cast<void>(co_await files_->getattr(file.handle));
      break;
    case 11:
      co_return co_await lock(how);
    case 12:
      co_return co_await other_writes();
    case 13:
      co_return co_await copy(how);
    case 14:
      co_return co_await name_values(how);
    default: {
      using nfs::client::Content;
      const auto what = (how & 1) != 0 ? Content::Data : Content::Hole;
      static_cast<void>(co_await files_->seek(file_, how, what));
      static_cast<void>(co_await files_->read_plus(file_, how, memory_));
      static_cast<void>(co_await files_->allocate(file_, {how, 100}));
      static_cast<void>(co_await files_->deallocate(file_, {how, 100}));
    }
  }
}

Task<void> World::lock(std::uint8_t how) {
  if (open_.empty()) co_return;
  const nfs::client::File file = open_.back();
  const nfs::client::LockOwner owner{1, how & 1u};
  const nfs::client::FileLock range{how, 10, (how & 2) != 0};
  static_cast<void>(co_await files_->test_lock(file, owner, range));
  static_cast<void>(co_await files_->lock(file, owner, range));
  if ((how & 4) != 0) static_cast<void>(co_await files_->unlock(file, owner, range));
}

Task<void> World::copy(std::uint8_t how) {
  const auto to = co_await files_->create(at_, "copy", {.mode = 0644});
  if (!to) co_return;
  const nfs::client::FileRange range{how, 4000};
  if ((how & 1) != 0)
    static_cast<void>(co_await files_->clone_range(file_, range, to->handle, 0));
  else
    static_cast<void>(co_await files_->copy_range(file_, range, to->handle, 0));
}

// Access control lists and extended attributes.
Task<void> World::name_values(std::uint8_t how) {
  if ((how & 3) == 3) {
    auto acls = co_await files_->acls(file_);
    if (!acls) co_return;
    static_cast<void>(co_await files_->set_acls(file_, *std::move(acls), (how & 4) != 0));
    co_return;
  }
  if ((how & 1) != 0) {
    auto acl = co_await files_->nfs4_acl(file_);
    if (acl) static_cast<void>(co_await files_->set_nfs4_acl(file_, *std::move(acl)));
    co_return;
  }
  static_cast<void>(co_await files_->set_xattr(file_, "name", "value"));
  const auto names = co_await files_->list_xattrs(file_);
  for (std::size_t i = 0; names && i < std::min<std::size_t>(names->size(), 4); ++i)
    static_cast<void>(co_await files_->xattr(file_, (*names)[i]));
  static_cast<void>(co_await files_->remove_xattr(file_, "name"));
}

Task<void> World::other_writes() {
  const auto opened =
      co_await others_->open(file_, nfs::client::access::kRead | nfs::client::access::kModify);
  if (!opened) co_return;
  static_cast<void>(co_await others_->write(opened->file, 0, bytes_of("other")));
  static_cast<void>(co_await others_->close(opened->file));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  World(input).live();
  return 0;
}
