// DeferredCalls: Calls of version 2 and NFSACL that wait for a holder who was asked to make way.
// Version 2 has no status for "later" (RFC 1094 2.3.1), and no client of NFSACL retries after one:
// the server answers these Calls when the holder has made way. Each keeps its
// place among the Calls in progress of its connection meanwhile, so there are few of them. So are
// those of version 3 that wait for the name of their client, in places of their own.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "rpc/message.h"

namespace stag::nfs {

struct DeferredLimits {
  // A quarter of what a connection over TCP may have in progress: the others, of files that nobody
  // is in the way of, go on.
  std::size_t of_connection = 8;
  std::size_t of_address = 128;
  std::size_t in_all = 1024;
};

class DeferredCalls {
 public:
  DeferredCalls() = default;
  explicit DeferredCalls(const DeferredLimits& limits) : limits_(limits) {}
  DeferredCalls(const DeferredCalls&) = delete;

  // Instead of the usual ones; called while no Call runs.
  void limit(const DeferredLimits& limits) { limits_ = limits; }

  // A Call is one of them as long as it has this.
  class Place {
   public:
    Place(Place&& other) noexcept
        : calls_(std::exchange(other.calls_, nullptr)),
          connection_(other.connection_),
          address_(std::move(other.address_)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (calls_ != nullptr) calls_->leave(*this);
    }

   private:
    friend DeferredCalls;
    Place(DeferredCalls& calls, std::uint64_t connection, std::string address)
        : calls_(&calls), connection_(connection), address_(std::move(address)) {}
    DeferredCalls* calls_;
    std::uint64_t connection_;
    std::string address_;
  };
  // From now on no Call waits: the next server answers those that are sent again.
  void end() { ended_.store(true, std::memory_order_relaxed); }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

  // nullopt: there are as many as may be, or nobody would say that the connection is gone.
  std::optional<Place> enter(const rpc::Origin& origin);

 private:
  void leave(const Place& place) noexcept;

  std::atomic<bool> ended_{false};
  DeferredLimits limits_;
  std::mutex mutex_;
  std::size_t all_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> of_connection_;
  std::unordered_map<std::string, std::size_t> of_address_;
};

}  // namespace stag::nfs
