// LocalLockTable: the byte ranges that clients have locked, of whatever version and by NLM, kept
// from programs of the server's machine, which see them as locks of one owner (vfs/local.h).
//
// Who gives locks out (a Source) has a table of its own. It gets a Hold before it adds something to
// it, and gives the Hold up when that is done, or was refused; it says freed() when something has
// gone. So what is held is never less than all sources have together, and soon no more: then the
// sources are asked what they have. Where there is no memory for that it is done later: the end of
// a lock does not fail.
//
// Thread: any. The mutex of a file is held over the system calls of LocalLocks, which do not block;
// none is held over a call of a Source. So a Source may call hold() with a mutex of its own locked;
// it gives Holds up, and calls freed(), without.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "base/task.h"
#include "nfs/state/outside.h"
#include "nfs/state/range_modes.h"
#include "vfs/vfs.h"

namespace stag::nfs {

class LocalFile;

// Files that are open at once, of all clients and of those at one address. Each takes up to three
// descriptors, and connections and the files that others use need theirs.
struct LocalLockLimits {
  std::size_t files = 0;
  std::size_t files_of_address = 0;
  // A sixteenth of what the process may open (RLIMIT_NOFILE), half of that for one address.
  static LocalLockLimits of_process();
};

class LocalLockTable final : public state::RangeMirror {
 public:
  struct Source {
    // Raises what it has locked in this range of a file.
    std::function<void(const state::FileKey&, const state::Range&, state::RangeModes& to)> locked;
    // The address of a client that has locked something of a file: `preferred`, if that is seen to
    // be one; nullopt: no client has.
    std::function<std::optional<std::string>(const state::FileKey&, const std::string& preferred)>
        locker;
  };
  LocalLockTable();
  ~LocalLockTable() override;
  LocalLockTable(const LocalLockTable&) = delete;

  // Instead of those of the process; called while no Call runs.
  void limit(const LocalLockLimits& limits) { limits_ = limits; }
  // Called while no Call runs. The Source is asked until it is removed.
  using SourceId = std::list<Source>::iterator;
  SourceId add(Source source);
  void remove(SourceId source);

  // Keeps a file open, so that hold() and conflict() can be asked of it. Empty: there are no local
  // programs.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept = default;
    Pin& operator=(Pin&& other) noexcept;
    ~Pin();
    explicit operator bool() const { return file_ != nullptr; }

   private:
    friend LocalLockTable;
    Pin(LocalLockTable& table, std::shared_ptr<LocalFile> file);
    LocalLockTable* table_ = nullptr;
    std::shared_ptr<LocalFile> file_;
  };
  // Of a regular file, which `key` names. All are used until the Task ends. TooManyObjects: too
  // many files are open, those of clients at `address` perhaps, which is the caller's without port.
  // A file counts for the address that opens it first, as long as a client there has something
  // locked in the file; then for the address of another that has.
  Task<Result<Pin, vfs::Status>> open(const state::FileKey& key, vfs::FileSystem& store,
                                      vfs::CallerContext caller, const std::string& address);

  // Keeps local programs from a range while a request on it is decided.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept = default;
    Hold& operator=(Hold&&) = delete;
    ~Hold();
    // Of a file that is open.
    explicit operator bool() const { return file_ != nullptr; }

   private:
    friend LocalLockTable;
    Hold(LocalLockTable& table, std::shared_ptr<LocalFile> file, const state::Range& range);
    LocalLockTable* table_ = nullptr;
    std::shared_ptr<LocalFile> file_;
    state::Range range_;
  };
  // Of a file that is open; an empty one of others. Fails with the lock of a local program.
  Result<Hold, state::ConflictingLock> hold(const state::FileKey& file, const state::Range& range,
                                            bool exclusive);
  std::optional<state::ConflictingLock> conflict(const state::FileKey& file,
                                                 const state::Range& range, bool exclusive) const;
  // Null: of any file.
  void freed(const state::FileKey* file, const state::Range& range) override;
  // Whether there was no memory to give something back that nobody has locked any more. Then
  // reconcile_overdue() is called now and then, without any lock.
  bool overdue() const { return overdue_.load(); }
  void reconcile_overdue();
  bool mirrors(const state::FileKey& file) const override { return is_open(file); }
  // Whether this file is open: programs see what is locked there.
  bool is_open(const state::FileKey& file) const { return find(file) != nullptr; }
  // Whether any file is open.
  bool any() const { return open_.load() != 0; }

 private:
  struct KeyHash {
    std::size_t operator()(const state::FileKey& key) const {
      return vfs::HandleHash()(key.handle) ^ std::hash<std::uint64_t>()(key.store);
    }
  };
  std::shared_ptr<LocalFile> find(const state::FileKey& key) const;
  Result<Pin, vfs::Status> pinned(const std::shared_ptr<LocalFile>& file);
  Pin pinned_if_open(const state::FileKey& key, const std::string& address);
  Pin pin(const std::shared_ptr<LocalFile>& file, const std::string& address);
  void release(LocalFile& file);
  void close_if_unused(LocalFile& file, std::shared_ptr<LocalFile>& closed);
  void reconcile(LocalFile& file, const state::Range& range);
  void postpone(LocalFile& file, const state::Range& range);
  void charge_locker(LocalFile& file);
  void charge(LocalFile& file, const std::string& before, std::string address);
  void discount(const std::string& address);
  state::RangeModes locked(const state::FileKey& key, const state::Range& range) const;

  std::list<Source> sources_;
  std::atomic<std::size_t> open_{0};
  std::atomic<bool> overdue_{false};  // some file has postponed something
  LocalLockLimits limits_ = LocalLockLimits::of_process();
  mutable std::mutex mutex_;
  std::unordered_map<state::FileKey, std::shared_ptr<LocalFile>, KeyHash> files_;
  std::unordered_map<std::string, std::size_t> files_of_address_;
};

}  // namespace stag::nfs
