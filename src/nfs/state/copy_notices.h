// Files that other servers may copy from this one (COPY_NOTIFY, RFC 7862 4.6.2, 15.3). The client
// that has a file open gets a copy stateid for it, and gives that to the server which is to read
// the file: that one, a client of its own, reads by the client's open.
//
// A notice ends when nobody has read by it for a lease, when its client cancels it, with the open,
// the locks or the delegation that it was given for, and with its client. The end of an open is not
// reported: a READ finds it out, and so does a COPY_NOTIFY that finds too many notices.
//
// Pure: no clock, thread or protocol. Every function may be called from any thread; no lock is held
// while Files is asked, nor while anything is allocated.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/brief_mutex.h"
#include "nfs/state/files.h"

namespace stag::nfs::state {

struct CopyNoticeLimits {
  std::uint32_t of_client = 256;  // beyond: Delay
  std::uint32_t all = 4096;
};

struct CopyNoticeArgs {
  FileKey file;
  Stateid source;                 // by which the client itself reads the file
  std::uint64_t destination = 0;  // the reader, and for which user; only compared
};

class CopyNotices {
 public:
  struct Options {
    std::uint32_t epoch = 1;  // of this start of the server, as in Files
    SipKey key{};
    Duration lease{};
    CopyNoticeLimits limits{};
  };

  // `files` outlives it.
  CopyNotices(Files& files, const Options& options) : files_(files), options_(options) {}
  CopyNotices(const CopyNotices&) = delete;

  // COPY_NOTIFY. What is asked for again is renewed and keeps its stateid. Openmode, Delay (a
  // limit), Expired, and those of stateids.
  StateidResult notify(const CopyNoticeArgs& args, const LifePtr& life, TimePoint now);
  // Whether any reader may read the file by this stateid, and may do so for another lease then.
  bool admits(const FileKey& file, const Stateid& stateid, TimePoint now);
  // OFFLOAD_CANCEL. False: the client has no such notice of this file.
  bool cancel(const FileKey& file, const Stateid& stateid, const Life& life);
  // Of a client that Ended. It asks for no memory.
  void release(const Life& life);
  // To be called now and then: what nobody has read by for a lease goes.
  void expire(TimePoint now);
  std::size_t size() const;

 private:
  // Stateid::other.
  using Name = std::array<std::byte, 12>;
  struct Notice {
    CopyNoticeArgs args;
    LifePtr life;
    TimePoint until;
  };
  using Notices = std::map<Name, Notice>;
  // What is the same where a client asks again.
  struct Request {
    ClientId clientid = 0;
    Name source{};
    std::uint64_t destination = 0;
    auto operator<=>(const Request&) const = default;
  };
  using Requests = std::map<Request, Name>;
  // Taken out under the lock, and freed without it.
  struct Removed {
    Notices notices;
    Requests requests;
  };

  Name next_name();
  static Request request_of(const Notice& notice) {
    return {notice.life->clientid, notice.args.source.other, notice.args.destination};
  }
  StateidResult add(const CopyNoticeArgs& args, const LifePtr& life, TimePoint now);
  std::optional<Notice> renew(const FileKey& file, const Stateid& stateid, TimePoint now);
  bool stands(const Notice& notice) const;
  using Some = std::vector<Notices::value_type>;
  // Unless it was renewed since `judged` was looked at.
  void end(const Notices::value_type& judged);
  void end_void(const Some& some);
  Some of_client(const Life& life) const;
  // As many as one client may have, behind those of the last time.
  Some next_portion();
  // The rest with the lock held.
  // From the first request of a client on.
  Requests::const_iterator first_of(ClientId client) const {
    return requests_.lower_bound({client});
  }
  bool is_of(Requests::const_iterator request, ClientId client) const {
    return request != requests_.end() && request->first.clientid == client;
  }
  Limit limit_of(ClientId client) const;
  // Yields the next one.
  Notices::iterator remove(Notices::iterator notice, Removed& removed);

  Files& files_;
  const Options options_;
  std::atomic<std::uint64_t> last_{0};
  mutable BriefMutex mutex_;
  Notices notices_;
  Requests requests_;  // that they were made for
  Name looked_at_{};   // the last one of next_portion()
};

}  // namespace stag::nfs::state
