#include <stag/endpoint/connector.h>
#include <stag/net/loop.h>
#include <stag/nfs/client/session/session.h>

#include <cstdio>

using namespace stag::nfs::client;
using stag::Failure, stag::Ok, stag::Task, stag::endpoint::Transport;

// Copies each file of the folder at `path` into a new folder below it; the server moves the data.
Task<Outcome<Ok>> copy_files(FileSystem& files, std::string path) {
  const Outcome<Node> folder = co_await files.walk(path);
  if (!folder) co_return Failure{folder.error()};
  const Outcome<Node> copies = co_await files.mkdir(folder->handle, "copies", {.mode = 0755});
  if (!copies) co_return Failure{copies.error()};
  Listing listing = files.list(folder->handle);
  for (auto batch = co_await listing.next();; batch = co_await listing.next()) {
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) co_return Ok{};
    for (const Entry& from : *batch) {
      if (!from.attributes || from.attributes->type != FileType::Regular) continue;
      const auto to = co_await files.create(copies->handle, from.name, {.mode = 0644});
      if (!to) co_return Failure{to.error()};
      const FileRange all{0, from.attributes->size};
      const auto copied = co_await files.copy_range(*from.handle, all, to->handle, 0);
      if (!copied) co_return Failure{copied.error()};
    }
  }
}
Task<void> work(stag::net::EpollLoop& loop, Connectors connectors, Url url, Outcome<Ok>& result) {
  FileSystemOptions options;
  options.calls.credentials = stag::rpc::Credentials::sys("example", 0, 0);
  auto session = co_await Session::open(connectors, url, options);
  if (!session) result = Failure{session.error()};
  if (session) result = co_await copy_files((*session)->files(), (*session)->path());
  if (session) co_await (*session)->close();
  loop.stop();
}
int main(int argc, char** argv) {
  const auto url = Url::parse(argc > 1 ? argv[1] : "nfs://127.0.0.1/export?version=4.2&proto=tcp");
  if (!url) return std::puts(url.error().sentence.c_str()), 2;
  stag::net::EpollLoop loop;
  const auto tcp = stag::endpoint::make_connector(loop, {.transport = Transport::Tcp});
  Outcome<Ok> result = Ok{};
  stag::detach(work(loop, {*tcp, *tcp}, *url, result));
  loop.run();
  return result ? 0 : (std::puts(result.error().sentence.c_str()), 1);
}
