#include <stag/nfs/blocking/files.h>

#include <cstdio>

using namespace stag::nfs::client;
using stag::nfs::blocking::Files;
namespace blocking = stag::nfs::blocking;

// Appends a line to the file "journal" of a folder, and prints what the folder has then: without
// coroutines, from any thread.
blocking::Outcome<stag::Ok> work(Files& files) {
  const auto journal = files.create("journal");
  if (!journal) return stag::Failure{journal.error()};
  const std::string line = "once more\n";
  const auto written = files.write(journal->file, journal->attributes.size, stag::bytes_of(line));
  const auto closed = files.close(journal->file);
  if (!written) return written;
  if (!closed) return closed;
  const auto entries = files.list("");
  if (!entries) return stag::Failure{entries.error()};
  for (const Entry& entry : *entries)
    std::printf("%s %llu\n", entry.name.c_str(),
                entry.attributes ? static_cast<unsigned long long>(entry.attributes->size) : 0);
  return stag::Ok{};
}

int main(int argc, char** argv) {
  const auto url = Url::parse(argc > 1 ? argv[1] : "nfs://127.0.0.1/export?proto=tcp");
  if (!url) return std::puts(url.error().sentence.c_str()), 2;
  blocking::Options options;
  options.files.calls.credentials = stag::rpc::Credentials::sys("example", 0, 0);
  auto files = Files::open(*url, options);
  if (!files) return std::puts(files.error().sentence.c_str()), 1;
  const auto done = work(*files);
  if (!done) return std::puts(done.error().sentence.c_str()), 1;
  return 0;
}
