// What the contract suite stands on: a loop without threads, users, and one store per test, made by
// its own backend.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "base/loop.h"
#include "testing/vfs/awaited.h"
#include "testing/vfs/backend.h"
#include "vfs/vfs.h"

namespace stag::vfs {

inline void PrintTo(Status status, std::ostream* out) {
  *out << to_string(status);
}

namespace testing {

// Runs posted functions when drained and offloaded work at once.
class InlineLoop final : public Loop {
 public:
  TimePoint now() const override { return {}; }
  void post(Function function) override { queue_.push_back(std::move(function)); }
  Timer after(Duration, Function) override { return {}; }
  void offload(Function work, Function done) override {
    work();
    ++offloads;
    post(std::move(done));
  }
  bool on_thread() const override { return true; }
  void drain() {
    while (!queue_.empty()) {
      Function next = std::move(queue_.front());
      queue_.pop_front();
      next();
    }
  }
  std::size_t offloads = 0;

 private:
  void cancel_timer(std::uint64_t) override {}
  std::deque<Function> queue_;
};

template <class T>
Task<void> deliver(Task<T> task, std::optional<T>& to) {
  to.emplace(co_await std::move(task));
}

template <class T>
T finish(InlineLoop& loop, Task<T> task) {
  std::optional<T> result;
  detach(deliver(std::move(task), result));
  loop.drain();
  STAG_CHECK(result.has_value());
  return *std::move(result);
}
template <class T>
Outcome<T> finish(InlineLoop& loop, Operation<T> operation) {
  return finish(loop, stag::testing::awaited(std::move(operation)));
}

// Takes every entry up to a number.
class Names final : public DirectorySink {
 public:
  explicit Names(std::size_t room = SIZE_MAX) : room_(room) {}
  bool entry(const DirectoryEntry& entry) override {
    if (taken_ == room_) return false;
    ++taken_;
    names.emplace_back(entry.name);
    cookie = entry.cookie;
    if (entry.node != nullptr) nodes.emplace(entry.name, *entry.node);
    return true;
  }
  std::vector<std::string> names;
  std::map<std::string, Node> nodes;
  std::uint64_t cookie = 0;

 private:
  std::size_t room_;
  std::size_t taken_ = 0;
};

inline SetAttributes mode_of(std::uint32_t mode) {
  SetAttributes attributes;
  attributes.mode = mode;
  return attributes;
}

// Entries in any order; the list must be one.
inline Acl acl_of(std::vector<AclEntry> entries) {
  const auto acl = Acl::from(std::move(entries));
  STAG_CHECK(acl.has_value());
  return *acl;
}

class VfsContract : public ::testing::TestWithParam<BackendFactory> {
 protected:
  VfsContract() : backend_(GetParam().make()) {}
  FileSystem& fs() { return backend_->fs(); }
  Backend& backend() { return *backend_; }
  Properties properties() const { return backend_->properties(); }
  // Goes on with a store that is soon full; false where there is none.
  bool use_small(std::uint64_t bytes) {
    if (!GetParam().make_small) return false;
    auto small = GetParam().make_small(bytes);
    if (small == nullptr) return false;
    backend_ = std::move(small);
    return true;
  }
  Handle root() { return fs().root(); }
  CallerContext as(const Credentials& who) { return CallerContext{loop_, who}; }

  template <class T>
  Outcome<T> run(Operation<T> operation) {
    return finish(loop_, std::move(operation));
  }
  // The outcome, once the loop has run for long enough.
  template <class T>
  std::shared_ptr<std::optional<Outcome<T>>> start(Operation<T> operation) {
    auto outcome = std::make_shared<std::optional<Outcome<T>>>();
    detach(keep(stag::testing::awaited(std::move(operation)), outcome));
    return outcome;
  }
  // The file `name` of `directory`, made with defaults; `name` is kept.
  std::shared_ptr<std::optional<Outcome<Created>>> start_create(const Handle& directory,
                                                                std::string_view name) {
    static const CreateHow kGuarded;
    return start(fs().create(as(root_user), directory, name, kGuarded));
  }
  InlineLoop& loop() { return loop_; }
  template <class T>
  T good(Operation<T> operation) {
    Outcome<T> outcome = run(std::move(operation));
    if (!outcome) ADD_FAILURE() << "failed: " << to_string(outcome.error());
    STAG_CHECK(outcome.ok());
    return *std::move(outcome);
  }
  template <class T>
  std::optional<Status> status(Operation<T> operation) {
    const Outcome<T> outcome = run(std::move(operation));
    if (outcome) return std::nullopt;
    return outcome.error();
  }

  Node make_file(std::string_view name, std::uint32_t mode = 0644) {
    return make_file(root(), name, mode);
  }
  Node make_file(const Handle& directory, std::string_view name, std::uint32_t mode = 0644) {
    return make_file(root_user, directory, name, mode);
  }
  Node make_file(const Credentials& who, const Handle& directory, std::string_view name,
                 std::uint32_t mode) {
    CreateHow how;
    how.attributes.mode = mode;
    return good(fs().create(as(who), directory, name, how)).node;
  }
  Node make_directory(const Handle& directory, std::string_view name, std::uint32_t mode = 0777) {
    return good(fs().mkdir(as(root_user), directory, name, mode_of(mode))).node;
  }
  Node find(const Handle& directory, std::string_view name) {
    return good(fs().lookup(as(root_user), directory, name)).node;
  }
  std::optional<Status> lookup_status(const Handle& directory, std::string_view name) {
    return status(fs().lookup(as(root_user), directory, name));
  }
  Attributes attributes(const Handle& object) {
    return good(fs().attributes(as(root_user), object));
  }
  void write(const Handle& file, std::uint64_t offset, std::string_view text) {
    const WriteResult written = good(fs().write(
        as(root_user), file, offset, Rope::copy_of(bytes_of(text)), Stability::Unstable));
    ASSERT_EQ(written.count, text.size());
  }
  std::string read(const Handle& file, std::uint64_t offset, std::uint32_t count) {
    const ReadResult result = good(fs().read(as(root_user), file, offset, count));
    return std::string(text_of(result.data.flatten().bytes()));
  }
  // The whole directory, in pages of `room` entries.
  std::vector<std::string> list(const Handle& directory, std::size_t room = SIZE_MAX,
                                std::function<void(std::size_t page)> between = {}) {
    std::vector<std::string> all;
    ListFrom from;
    for (std::size_t page = 0;; ++page) {
      Names names(room);
      const Listed listed = good(fs().list(as(root_user), directory, from, names));
      all.insert(all.end(), names.names.begin(), names.names.end());
      if (listed.eof) return all;
      STAG_CHECK(!names.names.empty());
      from.cookie = names.cookie;
      from.verifier = listed.verifier;
      if (between) between(page);
    }
  }

  const Credentials root_user{0, 0, {}};
  const Credentials alice{1000, 1000, {}};
  const Credentials bob{1001, 1001, {}};
  const Credentials friend_of_alice{1002, 1002, {1000}};

 private:
  template <class T>
  static Task<void> keep(Task<Outcome<T>> task,
                         std::shared_ptr<std::optional<Outcome<T>>> outcome) {
    outcome->emplace(co_await std::move(task));
  }

  InlineLoop loop_;
  std::unique_ptr<Backend> backend_;
};

#define SKIP_WITHOUT_USERS()           \
  if (!properties().tells_users_apart) \
  GTEST_SKIP() << "this store serves everybody as one user: run as root"

}  // namespace testing
}  // namespace stag::vfs
