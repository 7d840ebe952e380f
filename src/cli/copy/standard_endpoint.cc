// StandardEndpoint: standard input and output as files, for `stag cp - URL` and `stag cp URL -`,
// and devices as files to copy to, for `stag cp URL /dev/null`.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "cli/copy/copy_endpoint.h"
#include "cli/support/local_file.h"
#include "cli/support/standard_input.h"
#include "cli/support/standard_output.h"

namespace stag::cli {
namespace {

using nfs::client::DataSink;
using nfs::client::DataSource;
using nfs::client::Error;

// Reads what others write until they are done with it; cannot go back.
class InputSource final : public DataSource {
 public:
  explicit InputSource(Run& run) : run_(run) {}

  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes buffer) override {
    if (offset != read_)
      co_return Failure{Error::of_local(
          "the server restarted during the copy, and standard input cannot be read again")};
    const Outcome<std::size_t> got = co_await read_standard_input(run_, buffer);
    if (!got) co_return Failure{got.error()};
    read_ += *got;
    Piece piece;
    piece.data = buffer.first(*got);
    co_return piece;
  }
  std::uint64_t size() const { return read_; }

 private:
  Run& run_;
  std::uint64_t read_ = 0;
};

class OutputFile final : public TempFile, private DataSink {
 public:
  // `device` is empty for standard output.
  OutputFile(Run& run, Progress& progress, int fd, const std::string& device)
      : progress_(progress), output_(run, fd, device.empty() ? "standard output" : device) {}

  bool in_place() const override { return false; }
  // Never called: a copy has at most one end on this machine.
  Task<Outcome<Ok>> fill(DataSource&, std::uint64_t) override {
    co_return Failure{Error::of_local("both sides of the copy are on this machine")};
  }
  DataSink& sink() override { return *this; }
  Task<Outcome<Ok>> adopt(Extras) override { co_return Ok{}; }
  Task<Outcome<bool>> publish(std::uint64_t size) override {
    const Outcome<Ok> filled = co_await fill_up(size);
    if (!filled) co_return Failure{filled.error()};
    co_return true;
  }
  Task<void> discard() override { co_return; }

 private:
  // Zeros for a hole up to byte `end`.
  Task<Outcome<Ok>> fill_up(std::uint64_t end) {
    constexpr std::uint64_t kZeros = std::uint64_t{1} << 16;
    const std::vector<std::byte> zeros(std::min(end - std::min(end, written_), kZeros));
    while (written_ < end) {
      const Bytes part = Bytes(zeros).first(std::min<std::uint64_t>(zeros.size(), end - written_));
      const Outcome<Ok> put = co_await append(part);
      if (!put) co_return put;
    }
    co_return Ok{};
  }
  Task<Outcome<Ok>> write(std::uint64_t offset, Bytes data) override {
    const Outcome<Ok> filled = co_await fill_up(offset);
    if (!filled) co_return filled;
    progress_.bytes += data.size();
    co_return co_await append(data);
  }
  Task<Outcome<Ok>> append(Bytes data) {
    written_ += data.size();
    co_return co_await output_.write(data, progress_.unread);
  }

  Progress& progress_;
  StandardOutput output_;
  std::uint64_t written_ = 0;
};

// It has one file, and nothing else.
class StandardEndpoint final : public CopyEndpoint {
 public:
  StandardEndpoint(Run& run, Progress& progress) : run_(run), progress_(progress) {}
  StandardEndpoint(Run& run, Progress& progress, UniqueFd fd, std::string device)
      : run_(run), progress_(progress), fd_(std::move(fd)), device_(std::move(device)) {}

  Task<Outcome<std::optional<CopyObject>>> find(std::string path, Follow) override {
    CopyObject object;
    object.kind = path == "-" ? Kind::File : Kind::Directory;
    object.path = std::move(path);
    object.mode = 0666;
    co_return std::optional<CopyObject>(std::move(object));
  }
  Task<Outcome<std::optional<CopyObject>>> find_in(CopyObject, std::string) override {
    co_return std::optional<CopyObject>();
  }
  std::string shown_path(const std::string&) const override {
    return device_.empty() ? "-" : device_;
  }

  std::unique_ptr<DirIterator> members(const CopyObject&) override { return nullptr; }
  Task<Outcome<std::string>> readlink(CopyObject) override { co_return none(); }
  Task<Outcome<std::uint64_t>> feed(CopyObject, TempFile& temp_file, std::uint64_t) override {
    InputSource input(run_);
    const Outcome<Ok> filled = co_await temp_file.fill(input, 0);
    if (!filled) co_return Failure{filled.error()};
    co_return input.size();
  }
  Task<Outcome<std::uint64_t>> read_at(CopyObject, std::uint64_t, MutableBytes) override {
    co_return none();
  }
  // What is read of it to see whether that works would be missing in the copy.
  Task<Outcome<Ok>> check_readable(CopyObject) override { co_return Ok{}; }

  Task<Outcome<CopyObject>> mkdir(CopyObject, std::string, std::uint32_t) override {
    co_return none();
  }
  Task<Outcome<Ok>> symlink(CopyObject, std::string, std::string, Finish) override {
    co_return none();
  }
  Task<Outcome<std::string>> mknod(CopyObject, std::string, nfs::client::Special, Finish) override {
    co_return none();
  }
  Task<Outcome<Extras>> extras(CopyObject, ExtraKinds) override { co_return Extras{}; }
  Task<Outcome<Ok>> adopt(CopyObject, Extras) override { co_return none(); }
  Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject, std::string,
                                                     TempFilePlan) override {
    co_return std::unique_ptr<TempFile>(std::make_unique<OutputFile>(
        run_, progress_, device_.empty() ? STDOUT_FILENO : fd_.fd(), device_));
  }
  Task<Outcome<std::uint64_t>> unordered_bytes() override { co_return std::uint64_t{0}; }
  Task<Outcome<Ok>> link(CopyObject, CopyObject, std::string) override { co_return none(); }
  Task<Outcome<Ok>> finish(CopyObject, Finish) override { co_return none(); }
  Task<Outcome<nfs::client::Time>> modified(CopyObject) override { co_return none(); }
  Task<void> finish_symlink(CopyObject, Finish) override { co_return; }
  Task<Outcome<Ok>> rename(CopyObject, std::string, std::string) override { co_return none(); }
  Task<Outcome<Ok>> remove(CopyObject, Member) override { co_return none(); }

 private:
  Failure<Error> none() const {
    if (!device_.empty())
      return Failure{
          Error::of_local(fmt::format("'{}' is a device, and takes files only", device_))};
    return Failure{Error::of_local("standard input and output are one stream of bytes each")};
  }

  Run& run_;
  Progress& progress_;
  UniqueFd fd_;
  const std::string device_;  // empty: standard input and output
};

}  // namespace

Outcome<std::unique_ptr<CopyEndpoint>> device_endpoint(Run& run, Progress& progress,
                                                       std::string path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
  if (!fd) return Failure{Error::of_local(local_trouble("write", path, errno))};
  return std::unique_ptr<CopyEndpoint>(
      std::make_unique<StandardEndpoint>(run, progress, std::move(fd), std::move(path)));
}

std::unique_ptr<CopyEndpoint> standard_endpoint(Run& run, Progress& progress) {
  return std::make_unique<StandardEndpoint>(run, progress);
}

}  // namespace stag::cli
