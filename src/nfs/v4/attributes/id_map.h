// Users and groups by name, `user@domain` (RFC 8881 5.9), and by number. A directory service may be
// slow: the server asks it on a worker, for a bounded time, and keeps its answer for a while, also
// that it knows no such user or group.
//
// Thread: any. A question goes on when no caller waits for its answer any more: the next one to ask
// finds it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/loop.h"
#include "base/task.h"
#include "nfs/proto/nfs4.h"

namespace stag::nfs::nfs4 {

enum class IdKind : std::uint8_t { User, Group };
// What the name in an entry of an access control list is the name of, where it is none of the
// special ones.
inline IdKind kind_of(const v4::nfsace4& ace) {
  return (ace.flag & v4::ACE4_IDENTIFIER_GROUP) != 0 ? IdKind::Group : IdKind::User;
}

// The service that knows the names of users and groups. It blocks, and is called by one thread at a
// time.
class NameService {
 public:
  virtual ~NameService() = default;
  // nullopt: nobody has this number, or this name.
  virtual std::optional<std::string> name_of(IdKind kind, std::uint32_t id) = 0;
  virtual std::optional<std::uint32_t> id_of(IdKind kind, const std::string& name) = 0;
};

// The longest name that is asked for.
inline constexpr std::size_t kLongestName = 255;

struct IdMapOptions {
  // Whether clients are told names; they may always use either.
  bool gives_names = false;
  std::size_t entries = 8192;  // names and numbers that are kept
};

struct IdName {
  IdKind kind = IdKind::User;
  std::uint32_t id = 0;
};

class IdMap {
 public:
  // `worker` has one thread.
  IdMap(std::unique_ptr<NameService> names, std::shared_ptr<Executor> worker,
        const IdMapOptions& options = {});
  ~IdMap();

  bool gives_names() const { return gives_names_; }
  // `client` as of Executor::Job. BADOWNER: nobody has this name; DELAY: no answer in time.
  Task<Result<std::uint32_t, v4::nfsstat4>> id_of(IdKind kind, std::string name, Loop& loop,
                                                  const void* client);
  // Afterwards text_of() has names for these, where there are any, or it took too long.
  Task<void> learn(std::vector<IdName> ids, Loop& loop, const void* client);
  // What clients are told: the name, or the number of a user without.
  std::string text_of(IdKind kind, std::uint32_t id) const;
  // Whether text_of() says what learn() would make it say.
  bool knows(IdKind kind, std::uint32_t id, TimePoint now) const;

 private:
  struct State;

  const bool gives_names_;
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Executor> worker_;
};

}  // namespace stag::nfs::nfs4
