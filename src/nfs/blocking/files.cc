#include "nfs/blocking/files.h"

#include <iterator>

#include "endpoint/callback_listener.h"
#include "nfs/blocking/credentials.h"

namespace stag::nfs::blocking {
namespace {

using client::Entry;
using client::Error;
using client::File;
using client::FileSystem;
using client::Handle;
using client::Listing;
using client::Node;
using client::Opened;

struct Place {
  std::string directory;
  std::string name;
};

Place place_of(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", std::move(path)};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

Task<Outcome<std::vector<Entry>>> all_entries(FileSystem& files, std::string path) {
  const Outcome<Node> directory = co_await files.walk(path);
  if (!directory) co_return Failure{directory.error()};
  Listing listing = files.list(directory->handle, Listing::Detail::Attributes, Listing::kMostKept);
  std::vector<Entry> all;
  for (;;) {
    Outcome<std::vector<Entry>> batch = co_await listing.next();
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) co_return all;
    std::move(batch->begin(), batch->end(), std::back_inserter(all));
  }
}

Task<Outcome<Node>> made_directory(FileSystem& files, Place place, client::SetAttributes with) {
  const Outcome<Node> parent = co_await files.walk(place.directory);
  if (!parent) co_return Failure{parent.error()};
  co_return co_await files.mkdir(parent->handle, place.name, with);
}

Task<Outcome<Opened>> made_file(FileSystem& files, Place place, client::SetAttributes with,
                                client::CreateMode mode) {
  const Outcome<Node> parent = co_await files.walk(place.directory);
  if (!parent) co_return Failure{parent.error()};
  co_return co_await files.create_open(parent->handle, place.name, with, mode,
                                       client::access::kRead | client::access::kModify);
}

Task<Outcome<Ok>> removed(FileSystem& files, Place place, bool directory) {
  const Outcome<Node> parent = co_await files.walk(place.directory);
  if (!parent) co_return Failure{parent.error()};
  if (directory) co_return co_await files.rmdir(parent->handle, place.name);
  co_return co_await files.remove(parent->handle, place.name);
}

Task<Outcome<Ok>> renamed(FileSystem& files, Place from, Place to) {
  const Outcome<Node> source = co_await files.walk(from.directory);
  if (!source) co_return Failure{source.error()};
  const Outcome<Node> target = co_await files.walk(to.directory);
  if (!target) co_return Failure{target.error()};
  co_return co_await files.rename(source->handle, from.name, target->handle, to.name);
}

Task<Outcome<Opened>> opened(FileSystem& files, std::string path, std::uint32_t asked) {
  const Outcome<Node> file = co_await files.walk(path);
  if (!file) co_return Failure{file.error()};
  co_return co_await files.open(file->handle, asked);
}

Task<Outcome<std::uint64_t>> filled(FileSystem& files, File file, std::uint64_t offset,
                                    MutableBytes to) {
  std::uint64_t count = 0;
  while (count < to.size()) {
    const auto part = co_await files.read(file, offset + count, to.subspan(count));
    if (!part) co_return Failure{part.error()};
    count += part->count;
    if (part->eof || part->count == 0) break;
  }
  co_return count;
}

Task<Outcome<Ok>> written(FileSystem& files, File file, std::uint64_t offset, Bytes data) {
  while (!data.empty()) {
    const auto part = co_await files.write(file, offset, data, client::Stability::FileSync);
    if (!part) co_return Failure{part.error()};
    offset += part->count;
    data = data.subspan(part->count);
  }
  co_return Ok{};
}

endpoint::FabricKind fabric_of(const client::Url& url) {
  switch (url.fabric.value_or(client::Url::Fabric::Iwarp)) {
    case client::Url::Fabric::Verbs:
      return endpoint::FabricKind::Verbs;
    case client::Url::Fabric::Auto:
      return endpoint::FabricKind::Auto;
    case client::Url::Fabric::Iwarp:
      break;
  }
  return endpoint::FabricKind::Iwarp;
}

}  // namespace

struct Files::State {
  std::shared_ptr<endpoint::Loops> loops;
  std::unique_ptr<rpc::Connector> nfs;
  std::unique_ptr<rpc::Connector> tcp;
  std::unique_ptr<rpc::CallbackListener> callbacks;  // null: the URL names no place for one
  std::unique_ptr<client::Session> session;

  net::EpollLoop& loop() const { return loops->at(0); }
  ~State() {
    if (session == nullptr) return;
    endpoint::finish_on(loop(), [this] { return session->close(); });
    endpoint::finish_on(loop(), [this] { session = nullptr; });
  }
};

Files::Files(std::unique_ptr<State> state) : state_(std::move(state)) {}
Files::Files(Files&&) noexcept = default;
Files& Files::operator=(Files&&) noexcept = default;
Files::~Files() = default;

client::Session& Files::session() const {
  return *state_->session;
}
net::EpollLoop& Files::loop() const {
  return state_->loop();
}

Outcome<Files> Files::open(const client::Url& url, Options options) {
  if (const Outcome<Ok> adopted = adopt_user(url, options.files); !adopted)
    return Failure{adopted.error()};
  auto loops = endpoint::shared_or_own(std::move(options.loops));
  if (!loops)
    return Failure{Error::of_call({"connect to the NFS service", {}},
                                  rpc::CallError::transport(loops.error()))};
  auto state = std::make_unique<State>();
  state->loops = *std::move(loops);
  endpoint::ConnectorOptions wiring = options.connector;
  wiring.transport = endpoint::Transport::Tcp;
  state->tcp = make_connector(state->loop(), wiring);
  if (url.protocol == client::Url::Protocol::Rdma) wiring.transport = endpoint::Transport::Rdma;
  wiring.fabric = fabric_of(url);
  state->nfs = make_connector(state->loop(), wiring);
  if (url.callback)
    state->callbacks = endpoint::make_callback_listener(state->loop(), *url.callback);
  Outcome<std::unique_ptr<client::Session>> session = endpoint::wait_on(state->loop(), [&] {
    return client::Session::open({*state->nfs, *state->tcp, state->callbacks.get()}, url,
                                 options.files);
  });
  if (!session) return Failure{session.error()};
  state->session = *std::move(session);
  return Files(std::move(state));
}

std::string Files::full(const std::string& path) const {
  const std::string& top = session().path();
  return top.empty() || path.empty() ? top + path : top + "/" + path;
}

Outcome<Node> Files::find(std::string path) {
  return run([&](FileSystem& files) { return files.walk(full(path)); });
}

Outcome<std::vector<Entry>> Files::list(std::string path) {
  return run([&](FileSystem& files) { return all_entries(files, full(path)); });
}

Outcome<Node> Files::mkdir(std::string path, client::SetAttributes attributes) {
  return run(
      [&](FileSystem& files) { return made_directory(files, place_of(full(path)), attributes); });
}

Outcome<Ok> Files::remove(std::string path) {
  return run([&](FileSystem& files) { return removed(files, place_of(full(path)), false); });
}

Outcome<Ok> Files::rmdir(std::string path) {
  return run([&](FileSystem& files) { return removed(files, place_of(full(path)), true); });
}

Outcome<Ok> Files::rename(std::string from, std::string to) {
  return run(
      [&](FileSystem& files) { return renamed(files, place_of(full(from)), place_of(full(to))); });
}

Outcome<Opened> Files::open(std::string path, std::uint32_t asked) {
  return run([&](FileSystem& files) { return opened(files, full(path), asked); });
}

Outcome<Opened> Files::create(std::string path, client::SetAttributes attributes,
                              client::CreateMode mode) {
  return run(
      [&](FileSystem& files) { return made_file(files, place_of(full(path)), attributes, mode); });
}

Outcome<Ok> Files::close(File file) {
  return run([&](FileSystem& files) { return files.close(file); });
}

Outcome<std::uint64_t> Files::read(File file, std::uint64_t offset, MutableBytes to) {
  return run([&](FileSystem& files) { return filled(files, file, offset, to); });
}

Outcome<Ok> Files::write(File file, std::uint64_t offset, Bytes data) {
  return run([&](FileSystem& files) { return written(files, file, offset, data); });
}

}  // namespace stag::nfs::blocking
