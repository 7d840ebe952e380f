// One end of a copy that a test looks into, and in whose place it does something else.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/copy/copier.h"
#include "cli/copy/copy_endpoint.h"
#include "net/loop.h"

namespace stag::cli {

// The other end of a copy: the content of files by path; nullopt is a directory. Before it does
// something it tells the test, which then changes files of this machine.
using FakeFiles = std::map<std::string, std::optional<std::string>>;
using Told = std::function<void(const std::string& what)>;

class FakeTempFile final : public TempFile, private nfs::client::DataSink {
 public:
  using Adopt = std::function<Outcome<Ok>(const Extras&)>;
  FakeTempFile(FakeFiles& files, std::string path, Adopt adopt)
      : files_(files), path_(std::move(path)), adopt_(std::move(adopt)) {}
  bool in_place() const override { return false; }
  Task<Outcome<Ok>> fill(nfs::client::DataSource& source, std::uint64_t from) override {
    std::vector<std::byte> buffer(4096);
    for (;;) {
      const auto piece = co_await source.read(from + content_.size(), buffer);
      if (!piece) co_return Failure{piece.error()};
      content_.append(piece->hole, '\0');
      if (piece->data.empty()) co_return Ok{};
      content_.append(reinterpret_cast<const char*>(piece->data.data()), piece->data.size());
    }
  }
  nfs::client::DataSink& sink() override { return *this; }
  Task<Outcome<Ok>> adopt(Extras extras) override { co_return adopt_(extras); }
  Task<Outcome<bool>> publish(std::uint64_t) override {
    files_[path_] = content_;
    co_return true;
  }
  Task<void> discard() override { co_return; }

 private:
  Task<Outcome<Ok>> write(std::uint64_t, Bytes data) override {
    content_.append(reinterpret_cast<const char*>(data.data()), data.size());
    co_return Ok{};
  }

  FakeFiles& files_;
  const std::string path_;
  const Adopt adopt_;
  std::string content_;
};

class FakeEndpoint final : public CopyEndpoint {
 public:
  explicit FakeEndpoint(FakeFiles files) : files_(std::move(files)) {}
  FakeFiles& files() { return files_; }
  void tell(Told told) { told_ = std::move(told); }
  // Of names in directories.
  int lookups() const { return lookups_; }
  // Takes names that differ in case for one, and keeps the spelling of the first.
  void fold() { folds_ = true; }
  // What is at `from` is at `to` then, and found there by what was listed before, as by handles.
  void move(const std::string& from, const std::string& to) {
    moved_[from] = to;
    give_path(from, to);
  }
  // Changes what is said of each object.
  void show(std::function<void(CopyObject&)> shown) { shown_ = std::move(shown); }
  // What each object has beside its data, and what a file does with what it is to have.
  void have(Extras extras) { extras_ = std::move(extras); }
  void adopt_by(FakeTempFile::Adopt adopt) { adopt_ = std::move(adopt); }

  Task<Outcome<std::optional<CopyObject>>> find(std::string path, Follow) override {
    co_return object(path);
  }
  Task<Outcome<std::optional<CopyObject>>> find_in(CopyObject directory,
                                                   std::string name) override {
    ++lookups_;
    co_return object(where(directory) + "/" + name);
  }
  std::string shown_path(const std::string& path) const override { return "fake:" + path; }
  std::unique_ptr<DirIterator> members(const CopyObject& directory) override {
    told_("list " + directory.path);
    return std::make_unique<Iterator>(listed(where(directory) + "/"));
  }
  Task<Outcome<std::string>> readlink(CopyObject) override { co_return none(); }
  Task<Outcome<Extras>> extras(CopyObject, ExtraKinds kinds) override {
    Extras extras = extras_;
    if (!kinds.xattrs) extras.xattrs.clear();
    if (!kinds.acls) extras.acls.reset();
    co_return extras;
  }
  Task<Outcome<std::uint64_t>> feed(CopyObject file, TempFile& temp_file, std::uint64_t) override {
    told_("feed " + file.path);
    const std::string content = *files_.at(file.path);
    const auto written = co_await temp_file.sink().write(0, std::as_bytes(std::span(content)));
    if (!written) co_return Failure{written.error()};
    co_return content.size();
  }
  Task<Outcome<std::uint64_t>> read_at(CopyObject file, std::uint64_t offset,
                                       MutableBytes to) override {
    const std::string part = files_.at(file.path)->substr(offset, to.size());
    std::ranges::copy(std::as_bytes(std::span(part)), to.begin());
    co_return part.size();
  }
  Task<Outcome<CopyObject>> mkdir(CopyObject directory, std::string name, std::uint32_t) override {
    const std::string path = place(directory, name);
    told_("mkdir " + path);
    files_[path] = std::nullopt;
    co_return *object(path);
  }
  Task<Outcome<Ok>> symlink(CopyObject, std::string, std::string, Finish) override {
    co_return none();
  }
  Task<Outcome<std::string>> mknod(CopyObject, std::string, nfs::client::Special, Finish) override {
    co_return none();
  }
  Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject directory, std::string name,
                                                     TempFilePlan) override {
    std::string path = place(directory, name);
    told_("make " + path);
    co_return std::unique_ptr<TempFile>(
        std::make_unique<FakeTempFile>(files_, std::move(path), adopt_));
  }
  Task<Outcome<std::uint64_t>> unordered_bytes() override { co_return std::uint64_t{0}; }
  Task<Outcome<Ok>> link(CopyObject, CopyObject, std::string) override { co_return none(); }
  Task<Outcome<Ok>> finish(CopyObject, Finish) override { co_return Ok{}; }
  Task<Outcome<nfs::client::Time>> modified(CopyObject file) override { co_return file.modified; }
  Task<void> finish_symlink(CopyObject, Finish) override { co_return; }
  Task<Outcome<Ok>> adopt(CopyObject, Extras) override { co_return Ok{}; }
  Task<Outcome<Ok>> rename(CopyObject directory, std::string name, std::string to) override {
    const std::string from = place(directory, name), path = place(directory, to);
    told_("rename " + from + " " + to);
    give_path(from, path);
    co_return Ok{};
  }
  Task<Outcome<Ok>> remove(CopyObject directory, Member member) override {
    const std::string path = place(directory, member.name);
    told_("remove " + path);
    files_.erase(path);
    co_return Ok{};
  }

 private:
  class Iterator final : public DirIterator {
   public:
    explicit Iterator(std::vector<Member> members) : members_(std::move(members)) {}
    Task<Outcome<std::vector<Member>>> next() override { co_return std::exchange(members_, {}); }

   private:
    std::vector<Member> members_;
  };

  static Failure<nfs::client::Error> none() {
    return Failure{nfs::client::Error::of_local("no test needs it")};
  }
  static bool is_in(const std::string& path, const std::string& directory) {
    return path == directory || path.starts_with(directory + "/");
  }
  void give_path(const std::string& from, const std::string& to) {
    FakeFiles moved;
    for (const auto& [each, content] : files_)
      moved[is_in(each, from) ? to + each.substr(from.size()) : each] = content;
    files_ = std::move(moved);
  }
  std::string where(const CopyObject& found) const {
    for (const auto& [from, to] : moved_)
      if (is_in(found.path, from)) return to + found.path.substr(from.size());
    return found.path;
  }
  // `path` as it is listed.
  std::string spelled(const std::string& path) const {
    const auto same = [&path](const auto& file) {
      return std::ranges::equal(file.first, path, {}, ::tolower, ::tolower);
    };
    const auto at = folds_ ? std::ranges::find_if(files_, same) : files_.end();
    return at == files_.end() ? path : at->first;
  }
  std::string place(const CopyObject& directory, const std::string& name) const {
    return spelled(spelled(where(directory)) + "/" + name);
  }
  std::optional<CopyObject> object(const std::string& path) const {
    const auto at = files_.find(spelled(path));
    if (at == files_.end()) return std::nullopt;
    CopyObject object{.path = path};
    object.file_id = std::hash<std::string>()(at->first) + reinterpret_cast<std::uintptr_t>(this);
    object.kind = at->second ? Kind::File : Kind::Directory;
    object.mode = at->second ? 0644 : 0755;
    object.size = at->second.value_or("").size();
    shown_(object);
    return object;
  }
  std::vector<Member> listed(const std::string& asked) const {
    const std::string prefix = spelled(asked.substr(0, asked.size() - 1)) + "/";
    std::vector<Member> members;
    for (const auto& [path, content] : files_) {
      if (!path.starts_with(prefix) || path.find('/', prefix.size()) != std::string::npos) continue;
      members.push_back({path.substr(prefix.size()), *object(path)});
    }
    return members;
  }

  FakeFiles files_;
  std::map<std::string, std::string> moved_;
  bool folds_ = false;
  int lookups_ = 0;
  Told told_ = [](const std::string&) {};
  std::function<void(CopyObject&)> shown_ = [](CopyObject&) {};
  Extras extras_;
  FakeTempFile::Adopt adopt_ = [](const Extras&) { return Outcome<Ok>(Ok{}); };
};

// Copies between a folder of this machine and a FakeEndpoint.
class LocalCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "stag-local-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& path) const { return folder_ + "/" + path; }
  void write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(at(path)).parent_path());
    std::ofstream(at(path)) << content;
  }
  std::string read(const std::string& path) const {
    std::ifstream file(at(path));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> names(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(at(path)))
      names.push_back(each.path().filename());
    return names;
  }

  template <class T>
  T run(Task<T> task) {
    struct End final : TaskEnd {
      explicit End(net::EpollLoop& its) : loop(its) {}
      void on_task_end() noexcept override {
        ended = true;
        loop.stop();
      }
      net::EpollLoop& loop;
      bool ended = false;
    } end(loop_);
    task.start(end);
    while (!end.ended) loop_.run();
    return std::move(task.result());
  }
  Task<bool> copied(CopyEndpoint& from, CopyEndpoint& to, CopyOptions options, std::string source,
                    std::string name, std::string destination) {
    Copier::FirstNames names;
    Copier copier(
        run_, from, to, options, names, progress_,
        [this](const std::string& sentence) { complaints_.push_back(sentence); },
        [this](const std::string&, const std::string& path) { announced_(path); });
    co_await copier.copy(std::move(source), std::move(name), std::move(destination));
    co_await copier.complete();
    co_return copier.all_well();
  }
  // `sync --delete`, or `cp -r`.
  static CopyOptions mirror() {
    CopyOptions options{.recursive = true, .directories = true, .remove_others = true};
    options.preserve.times = true;
    return options;
  }
  bool copy_to(FakeEndpoint& from, CopyOptions options, std::string name) {
    return run(copied(from, *local_, std::move(options), "top", std::move(name), at("dst")));
  }
  bool copy_from(FakeEndpoint& to, CopyOptions options) {
    return run(copied(*local_, to, std::move(options), at("src"), "", "top"));
  }

  std::string folder_;
  net::EpollLoop loop_;
  cli::Run run_{loop_, {}};
  Progress progress_;
  std::unique_ptr<CopyEndpoint> local_ = local_endpoint(run_, progress_);
  std::vector<std::string> complaints_;
  Told announced_ = [](const std::string&) {};
};

}  // namespace stag::cli
