// Records: what a status monitor keeps over a restart (X/Open XNFS, chapter 11): its own state
// number, odd while the host is up and higher after every restart, and the hosts that hold locks,
// so that SM_NOTIFY tells them to reclaim their locks after this server restarted.
//
// A directory holds `state`, a decimal number, and `hosts/` with an empty file for each client,
// named by its address. A client's file is there before its first lock is granted. `name` is the
// name that SM_NOTIFY carries; the file of a client that was adopted from another server holds that
// server's name, since it is the one that the client's monitor knows. It goes some time after the
// client's last lock, or at an orderly end of the server (remove_unneeded()): for whom it is there,
// everybody waits after a restart. A client that was told of a restart and has not reclaimed yet
// keeps it, since the server may restart again before it does.
//
// `missed` names, one in a line, the clients that could have reclaimed in a grace period and did
// not until it ended: others may have had since what they held (decision 0088). They are told of
// the next restart, too, and reclaim nothing until they have locked something anew. Earlier
// versions wrote no such file, and nothing else that tells who missed what: all hosts that they
// have left may reclaim, for to refuse them would take the locks of all at each upgrade. They do
// not read it, and tell and wait for the same hosts as ever.
//
// Methods marked blocking touch the disk, and are called by worker(); all may be called from any
// thread.
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
  // Reads the records and counts a restart. With an empty name nothing is kept on disk. Blocking.
  // `worker` null: the threads of the caller's loop.
  static Result<std::unique_ptr<Records>, StateError> open(
      const std::string& directory, std::shared_ptr<Executor> worker = nullptr);
  Executor* worker() const { return worker_.get(); }

  // The records of a server that has ended and cannot begin meanwhile.
  struct Lost {
    std::string directory;
    std::string name;
    std::int32_t state = 0;
    std::vector<std::string> hosts;  // none where the server did not write down its name
    std::set<std::string> missed;    // of these, and of others
  };
  // Blocking.
  static Result<Lost, StateError> read_ended(const std::string& directory);
  // Its hosts are to be notified by its name, too, with a state number that neither server has had.
  // To adopt them again changes nothing. Blocking.
  Result<Ok, StateError> adopt(const Lost& lost);
  // Removes them there. Blocking.
  static Result<Ok, StateError> give_away(const Lost& lost);
  // Writes down the name of this host, before anything else is asked of the records. Where it had
  // another, that is the former name of the hosts that are to be notified. Blocking.
  Result<Ok, StateError> keep_name(const std::string& name);

  std::int32_t state() const;
  // The hosts that have not been notified of the restart.
  std::vector<std::string> unnotified() const;
  bool any_unnotified() const;
  // The name by which a host that is to be notified knows the server, if not by its present one;
  // else empty.
  std::string former_name(const std::string& address) const;
  bool has(const std::string& address) const;
  // Whether this host was notified, and so may be about to reclaim its locks.
  bool was_notified(const std::string& address) const;
  // Whether this host had locks when the server ended, or was adopted, and no grace period has
  // ended since that it missed. Known or not whether it was notified.
  bool may_reclaim(const std::string& address) const;
  // The same, and it reclaims: it has not missed this grace period.
  bool reclaims(const std::string& address);
  // Whether there is a host that has something to miss at the end of a grace period.
  bool any_may_reclaim() const;
  // Comes before the end of a grace period: from now on nobody may reclaim, and who has not never
  // will. Nothing where the period `is_due` no more: hosts were adopted. Blocking.
  Result<Ok, StateError> cut_off(const std::function<bool()>& is_due);

  // Keeps a host's record in place while it exists.
  class Hold {
   public:
    Hold() = default;
    Hold(Records& records, std::string address)
        : records_(&records), address_(std::move(address)) {}
    Hold(Hold&& other) noexcept
        : records_(std::exchange(other.records_, nullptr)), address_(std::move(other.address_)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (records_ != nullptr) records_->release(address_);
    }
    explicit operator bool() const { return records_ != nullptr; }

   private:
    Records* records_ = nullptr;
    std::string address_;
  };
  // Empty when the host has no record, or has missed a grace period: add() makes one.
  Hold hold(const std::string& address);
  // Whether this client has locks, or may still reclaim some.
  using InUse = std::function<bool(const std::string& address)>;
  // At the limit, drops the least recently held record that is not in use. Blocking.
  Result<Ok, StateError> add(const std::string& address, const InUse& in_use = {});
  // Grows each time that a record is held.
  std::uint64_t uses() const;
  // Drops the records of hosts that are not in use, and were last held when uses() was `until` or
  // less. A host that is still to be notified of the last restart keeps its record. Blocking.
  Result<Ok, StateError> remove_unneeded(const InUse& in_use, std::uint64_t until);
  // The host was notified by this state number. From now on its record is like those that were
  // added. Nothing when another restart has been counted since, or its host adopted: it is to be
  // told of that.
  void notified(const std::string& address, std::int32_t state);
  // The host could not be reached for too long. Its record stays when it was added meanwhile. Of
  // `state` as with notified(). Blocking.
  Result<Ok, StateError> give_up(const std::string& address, std::int32_t state);
  // Simulates a restart: a new state number, and all hosts are to be notified. Blocking.
  Result<Ok, StateError> restart();

 private:
  Records(std::string directory, std::shared_ptr<Executor> worker)
      : directory_(std::move(directory)), worker_(std::move(worker)) {}
  std::string hosts() const { return directory_ + "/hosts"; }
  Result<Ok, StateError> count_restart(std::int32_t above = -1);
  Result<Ok, StateError> read_hosts();
  Result<Ok, StateError> write_missed(const std::set<std::string>& missed) const;
  Result<Ok, StateError> change_missed(std::set<std::string> missed);
  Result<Ok, StateError> remember_name(const std::string& former);
  void release(const std::string& address);
  Result<Ok, StateError> make_room(const InUse& in_use);
  // A host that nobody holds, and when it was last held.
  using Unheld = std::pair<std::uint64_t, std::string>;
  bool is_unnotified(const std::string& address) const;
  // Those that were last held until then, the least recently held first.
  std::vector<Unheld> unheld(std::uint64_t until) const;
  // False when it has been held since: its host may have locks now. With disk_ held.
  bool drop(const Unheld& seen);
  Result<Ok, StateError> remove_dropped();

  struct Entry {
    std::uint64_t last = 0;  // uses_ when it was last held
    std::size_t holds = 0;
    std::string former_name{};
    bool notified = false;
  };

  const std::string directory_;
  const std::shared_ptr<Executor> worker_;
  std::mutex disk_;  // held over system calls, by workers only
  mutable std::mutex mutex_;
  std::int32_t state_ = 1;
  std::map<std::string, std::string> unnotified_;  // with former names
  std::map<std::string, Entry> added_;
  std::uint64_t uses_ = 0;
  std::map<std::string, bool> may_reclaim_;  // whether it has begun
  std::set<std::string> missed_;             // changed with disk_ held
  std::vector<std::string> dropped_;         // hosts whose files are to be removed; with disk_ held
};

}  // namespace stag::nfs::lock
