// What a status monitor must remember over a restart (X/Open XNFS, chapter 11): its own state
// number, odd while the host is up and higher after every restart, and which clients hold locks, so
// that they can be told that this server restarted and that they must reclaim them.
//
// A directory holds `state`, a decimal number, and `hosts/` with an empty file for each client,
// named by its address. A client's file is there before its first lock is granted. Methods marked
// blocking touch the disk, and are called by worker(); all may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "nfs/export/state/durable_file.h"

namespace stag::nfs::lock {

class Records {
 public:
  // Reads them, and counts a restart. An empty name: nothing is kept, and nobody is remembered.
  // Blocking. `worker` null: the threads of the caller's loop.
  static Result<std::unique_ptr<Records>, StateError> open(
      const std::string& directory, std::shared_ptr<Executor> worker = nullptr);
  Executor* worker() const { return worker_.get(); }

  std::int32_t state() const;
  // Who is to be told of the restart.
  std::vector<std::string> untold() const;
  bool has(const std::string& address) const;

  // A record stays at least as long as anybody has one of these.
  class Hold {
   public:
    Hold() = default;
    Hold(Records& records, std::string address)
        : records_(&records), address_(std::move(address)) {}
    Hold(Hold&& other) noexcept
        : records_(std::exchange(other.records_, nullptr)), address_(std::move(other.address_)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (records_ != nullptr) records_->let_go(address_);
    }
    explicit operator bool() const { return records_ != nullptr; }

   private:
    Records* records_ = nullptr;
    std::string address_;
  };
  // Empty when there is none: add() it.
  Hold hold(const std::string& address);
  // Whether this client has locks.
  using InUse = std::function<bool(const std::string& address)>;
  // When there are too many, drops the one that was held longest ago of those not in use. Blocking.
  Result<Ok, StateError> add(const std::string& address, const InUse& in_use = {});
  // The client was told, or cannot be. Its record stays when add() came meanwhile. Blocking.
  Result<Ok, StateError> told(const std::string& address);
  // As if the host had restarted: a new state, and everybody is to be told. Blocking.
  Result<Ok, StateError> restart();

 private:
  Records(std::string directory, std::shared_ptr<Executor> worker)
      : directory_(std::move(directory)), worker_(std::move(worker)) {}
  std::string hosts() const { return directory_ + "/hosts"; }
  Result<Ok, StateError> count_restart();
  Result<Ok, StateError> read_hosts();
  void let_go(const std::string& address);
  Result<Ok, StateError> make_room(const InUse& in_use);

  struct Entry {
    std::uint64_t last = 0;  // uses_ when it was last held
    std::size_t holds = 0;
  };

  const std::string directory_;
  const std::shared_ptr<Executor> worker_;
  std::mutex disk_;  // held over system calls, by workers only
  mutable std::mutex mutex_;
  std::int32_t state_ = 1;
  std::set<std::string> untold_;
  std::map<std::string, Entry> added_;
  std::uint64_t uses_ = 0;
};

}  // namespace stag::nfs::lock
