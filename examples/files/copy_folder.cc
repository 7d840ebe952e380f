#include <stag/nfs/blocking/files.h>

#include <cstdio>

using namespace stag::nfs::client;
using stag::Failure, stag::Ok, stag::Task, stag::nfs::blocking::Files;

// Copies the files of the folder at `path`, with their access control lists, to one below it.
Task<Outcome<Ok>> copy_files(FileSystem& files, std::string path) {
  const auto folder = co_await files.walk(path);
  if (!folder) co_return Failure{folder.error()};
  const auto copies = co_await files.mkdir(folder->handle, "copies", {.mode = 0755});
  if (!copies) co_return Failure{copies.error()};
  Listing listing = files.list(folder->handle);
  while (true) {
    const auto batch = co_await listing.next();
    if (!batch) co_return Failure{batch.error()};
    if (batch->empty()) co_return Ok{};
    for (const Entry& from : *batch) {
      if (!from.attributes || from.attributes->type != FileType::Regular) continue;
      const auto copy = co_await files.create(copies->handle, from.name, {.mode = 0644});
      if (!copy) co_return Failure{copy.error()};
      const FileRange all{0, from.attributes->size};
      const auto copied = co_await files.copy_range(*from.handle, all, copy->handle, 0);
      if (!copied) co_return Failure{copied.error()};
      const auto lists = co_await files.acls(*from.handle);
      if (!lists || !lists->beyond_mode()) continue;
      const auto listed = co_await files.set_acls(copy->handle, *lists);
      if (!listed) co_return Failure{listed.error()};
    }
  }
}

int main(int argc, char** argv) {
  const auto url = Url::parse(argc > 1 ? argv[1] : "nfs://127.0.0.1/export?version=4.2&proto=tcp");
  if (!url) return std::puts(url.error().sentence.c_str()), 2;
  stag::nfs::blocking::Options options;
  options.files.calls.credentials = stag::rpc::Credentials::sys("example", 0, 0);
  auto server = Files::open(*url, options);
  if (!server) return std::puts(server.error().sentence.c_str()), 1;
  const std::string path = server->session().path();
  const auto done = server->run([&](FileSystem& files) { return copy_files(files, path); });
  return done ? 0 : (std::puts(done.error().sentence.c_str()), 1);
}
