#include <stag/base/task_group.h>
#include <stag/nfs/blocking/files.h>

#include <cstdio>

using namespace stag::nfs::client;
using stag::Failure, stag::Ok, stag::Task, stag::TaskGroup, stag::nfs::blocking::Files;

// Copies a file into the folder `to`; the server moves the data. `done` is told of a failure.
Task<> copy_file(FileSystem& files, Entry from, Handle to, Outcome<Ok>& done) {
  const auto copy = co_await files.create(to, from.name, {.mode = 0644});
  if (!copy) done = Failure{copy.error()};
  if (!copy) co_return;
  const FileRange all{0, from.attributes->size};
  const auto copied = co_await files.copy_range(*from.handle, all, copy->handle, 0);
  if (!copied) done = Failure{copied.error()};
}

// Copies the files of the folder at `path` into a new folder below it, eight at a time.
Task<Outcome<Ok>> copy_files(FileSystem& files, std::string path) {
  const Outcome<Node> folder = co_await files.walk(path);
  if (!folder) co_return Failure{folder.error()};
  const Outcome<Node> copies = co_await files.mkdir(folder->handle, "copies", {.mode = 0755});
  if (!copies) co_return Failure{copies.error()};
  Listing listing = files.list(folder->handle);
  Outcome<Ok> done = Ok{};
  TaskGroup tasks;
  for (auto batch = co_await listing.next(); done; batch = co_await listing.next()) {
    if (!batch) done = Failure{batch.error()};
    if (!batch || batch->empty()) break;
    for (const Entry& from : *batch) {
      if (!from.attributes || from.attributes->type != FileType::Regular) continue;
      co_await tasks.at_most(7);
      tasks.add(copy_file(files, from, copies->handle, done));
    }
  }
  co_await tasks.join();
  co_return done;
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
