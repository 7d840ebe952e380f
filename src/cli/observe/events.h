// Events: what is remembered and logged of single calls: connections, mounts, calls that took long,
// and every step of the calls of a client that is followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/network.h"
#include "cli/observe/statistics.h"
#include "cli/support/log.h"

namespace stag::cli {

struct EventOptions {
  Duration slow = std::chrono::seconds(1);  // zero: no call is slow
  std::vector<IpNetwork> traced{};          // clients whose calls are followed
};

// The path of an export, that of one that is gone among them; empty: it is not known. Any thread.
using ExportPaths = std::function<std::string(std::uint32_t export_id)>;

struct SlowCall {
  std::int64_t ended = 0;  // seconds since 1970
  std::string client{};    // address and port
  std::string address{};
  std::string netid{};
  std::uint32_t xid = 0;
  std::string what{};         // "nfs 3 READ", "nfs 4 OPEN"
  std::string export_path{};  // empty: not known
  std::string status{};
  Duration took{};
};

// Thread: any.
class Events {
 public:
  static constexpr std::size_t kRemembered = 64;  // of an address that has most the oldest goes

  explicit Events(EventOptions options) { change(std::move(options)); }

  // From the next call on; of those in progress the rest is as the new ones say.
  void change(EventOptions options);

  void on_connected(const rpc::Origin& origin) const;
  void on_disconnected(const rpc::Origin& origin, Reason reason) const;
  void on_call_arrived(const rpc::Origin& origin, const rpc::ArrivedCall& call) const;
  void on_whole_call(const rpc::Origin& origin, const rpc::WholeCall& call) const;
  void on_call_begun(const rpc::BegunCall& call) const;
  // Whether one of the next two is to be called: mostly not.
  bool wants(const rpc::EndedCall& call, const Statistics::Ended& ended) const {
    return traces() || is_slow(ended.took) || (call.header && call.header->program == kMount);
  }
  bool wants(const nfs::nfs4::EndedOperation& operation, Duration took) const {
    return traces() || is_slow(took) || changes_sessions(operation.number);
  }
  void on_call_ended(const rpc::EndedCall& call, const Statistics::Ended& ended,
                     const ExportPaths& path_of);
  void on_reply_sent(const rpc::Origin& origin, const rpc::SentReply& reply) const;
  void on_whole_reply(const rpc::Origin& origin, const rpc::WholeReply& reply) const;
  // `took` is zero where it is not known.
  void on_operation(const nfs::nfs4::EndedOperation& operation, Duration took);

  bool traces() const { return traces_.load(std::memory_order_relaxed); }
  // Those that ended last, the latest first.
  std::vector<SlowCall> slow_calls() const;
  std::uint64_t slow_count() const { return slow_count_.load(std::memory_order_relaxed); }
  Duration slow() const { return Duration(slow_.load(std::memory_order_relaxed)); }

 private:
  static constexpr std::uint32_t kMount = 100005;
  static bool changes_sessions(std::uint32_t operation);
  bool is_traced(const rpc::Origin& origin) const;
  bool is_slow(Duration took) const {
    const Duration limit = slow();
    return limit.count() != 0 && took >= limit;
  }
  void remember(const rpc::Origin& origin, SlowCall call);

  // What each call looks at while nobody is followed; a lock is for those who follow.
  std::atomic<Duration::rep> slow_;
  std::atomic<bool> traces_;
  std::atomic<std::uint64_t> slow_count_{0};
  mutable std::mutex mutex_;
  std::vector<IpNetwork> traced_;    // guarded by mutex_
  std::deque<SlowCall> slow_calls_;  // guarded by mutex_
};

}  // namespace stag::cli
