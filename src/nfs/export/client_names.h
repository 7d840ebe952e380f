// The names of clients, for exports to patterns of host names ("*.example.com") and to netgroups
// ("@trusted"): a client's address is looked up, and a name counts if it leads back to the address,
// since the owner of a network decides what its addresses are called. Name services take their
// time: they are asked on a worker, once at a time for an address, and what they said is kept for a
// while, also that a client has no name.
//
// Thread: any. Errors: a failed lookup is no answer; nobody is admitted or turned away by it. A
// netgroup that was there and is not any more is a failed one.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "base/loop.h"
#include "base/network.h"
#include "base/result.h"
#include "base/task.h"

namespace stag::nfs {

// The service that resolves the names of hosts. It blocks, and is called by several threads at
// once.
class HostNameService {
 public:
  virtual ~HostNameService() = default;
  struct NoAnswer {};  // no service knows now; later one may
  using Texts = Result<std::vector<std::string>, NoAnswer>;
  // The names that an address, in its numeric form, is said to have. None: it has no name.
  virtual Texts names_of(const std::string& address) = 0;
  // The numeric addresses of a name. None: there is no such name.
  virtual Texts addresses_of(const std::string& name) = 0;
  // That of the server, "example.com": netgroups may have its hosts by what stands before it, as
  // "desk". Empty: it has none.
  virtual Result<std::string, NoAnswer> domain() = 0;
  // Whether a host, by its name or its numeric address, belongs to a netgroup.
  virtual Result<bool, NoAnswer> is_member(const std::string& netgroup,
                                           const std::string& host) = 0;
  // Whether there is such a netgroup; false, too, where the service that has it does not answer and
  // none can tell.
  virtual Result<bool, NoAnswer> has_netgroup(const std::string& netgroup) = 0;
};

struct ClientNamesOptions {
  // Clients whose names are kept: more than may be connected. A client that is displaced between
  // two of its calls is put off at each of them.
  std::size_t entries = 65536;
  // What one neighbourhood (a /64 of IPv6) may have of them when there are that many; beyond, it
  // displaces its own.
  std::size_t entries_each = 4096;
};

class ClientNames {
 public:
  ClientNames(std::shared_ptr<HostNameService> service, std::shared_ptr<Executor> worker,
              const ClientNamesOptions& options = {});
  ~ClientNames();
  ClientNames(const ClientNames&) = delete;
  ClientNames& operator=(const ClientNames&) = delete;

  // Whether `match` is a pattern of names or a netgroup, which names are needed for.
  static bool is_pattern(std::string_view match);
  // The lookup of a client asks only for netgroups that were mentioned; the membership in a new one
  // is unknown until the client has been looked up again. `there`: a service has the netgroup now.
  void mention(std::string_view match, bool there = false);
  // Netgroups other than these are not asked for any more.
  void keep_only(const std::set<std::string>& matches);
  // Each client is looked up again when it calls. What was said before holds only where nobody
  // answers then in time, or nobody can be asked.
  void forget();

  // The client whose Call needs the names; `loop` is that of the calling thread.
  struct Asker {
    Loop& loop;
    std::string_view host;  // Address::host, numeric
  };
  enum class Match : std::uint8_t { No, Yes, Undecided };
  // Does not wait: where it is not known yet, it begins a lookup, and the match is Undecided.
  Match matches(const std::string& match, const IpAddress& address, const Asker& asker);
  // Ends when nobody is asked for this client (any more), what was forgotten holds again, or
  // ten seconds, or `at_most`, are over.
  Task<void> settle(IpAddress address, Loop& loop, Duration at_most = Duration::max());

 private:
  struct State;
  struct Question;

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Executor> worker_;
};

}  // namespace stag::nfs
