#include "nfs/recovery/rados.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "nfs/recovery/rados_functions.h"

namespace stag::nfs::recovery {
namespace {

constexpr const char* kFile = "nfs4-clients.db";
// Where the VFS has its lock, and what it calls it.
constexpr const char* kFirstObject = "nfs4-clients.db.0000000000000000";
constexpr const char* kLock = "striper.lock";
// Ceph's default, where its configuration does not say.
constexpr std::chrono::milliseconds kLockTimeout{30'000};
// A renewal that is on its way when the time is over is one of a server that lives.
constexpr std::chrono::milliseconds kMargin{2'000};
constexpr std::chrono::milliseconds kPause{50};

std::string error_text(int error) {
  return std::strerror(-error);
}

class Connection {
 public:
  explicit Connection(const RadosFunctions& functions) : call_(functions) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (pool_ != nullptr) call_.ioctx_destroy(pool_);
    if (cluster_ != nullptr) call_.shutdown(cluster_);
  }

  Result<Ok, std::string> open(const RadosPlace& place);
  bool has_records() const;
  // The owner of the lock; nullopt: there is no lock, or one that has run out.
  Result<std::optional<std::string>, std::string> owner() const;
  std::chrono::milliseconds lock_timeout() const;
  int lend_to_vfs() const {
    char* address = nullptr;
    const int failed = call_.set_vfs_context(call_.cct(cluster_), &address);
    std::free(address);
    return failed;
  }

 private:
  const RadosFunctions& call_;
  RadosFunctions::Cluster cluster_ = nullptr;
  RadosFunctions::Pool pool_ = nullptr;
};

Result<Ok, std::string> Connection::open(const RadosPlace& place) {
  const char* const id = place.id.empty() ? nullptr : place.id.c_str();
  const char* const file = place.configuration.empty() ? nullptr : place.configuration.c_str();
  int failed = call_.create(&cluster_, id);
  if (failed >= 0) failed = call_.conf_read_file(cluster_, file);
  if (failed < 0)
    return Failure{"cannot read the configuration of Ceph" +
                   (place.configuration.empty() ? "" : " in " + place.configuration) + ": " +
                   error_text(failed)};
  failed = call_.connect(cluster_);
  if (failed < 0)
    return Failure{"cannot connect to the Ceph cluster: " + error_text(failed) +
                   "; see that its monitors run, and that the Ceph user may use it"};
  failed = call_.ioctx_create(cluster_, place.pool.c_str(), &pool_);
  if (failed == -ENOENT)
    return Failure{"the Ceph cluster has no pool '" + place.pool + "'; make it, or name another"};
  if (failed < 0) return Failure{"cannot use the pool '" + place.pool + "': " + error_text(failed)};
  call_.ioctx_set_namespace(pool_, place.name_space.c_str());
  return Ok{};
}

bool Connection::has_records() const {
  std::uint64_t size = 0;
  std::time_t changed = 0;
  return call_.stat(pool_, kFirstObject, &size, &changed) != -ENOENT;
}

Result<std::optional<std::string>, std::string> Connection::owner() const {
  int exclusive = 0;
  std::array<char, 256> tag, client, cookie, address;
  std::size_t tags = tag.size(), clients = client.size(), cookies = cookie.size(),
              addresses = address.size();
  const ssize_t count =
      call_.list_lockers(pool_, kFirstObject, kLock, &exclusive, tag.data(), &tags, client.data(),
                         &clients, cookie.data(), &cookies, address.data(), &addresses);
  if (count == 0 || count == -ENOENT) return std::optional<std::string>();
  if (count < 0)
    return Failure{"cannot see who has them: " + error_text(static_cast<int>(count)) +
                   "; the Ceph user needs read, write and execute rights in the pool"};
  std::string_view text(address.data(), strnlen(address.data(), address.size()));
  // The version of the protocol: addresses to be blocklisted are written without.
  if (text.starts_with("v1:") || text.starts_with("v2:")) text.remove_prefix(3);
  return std::optional(std::string(text));
}

std::chrono::milliseconds Connection::lock_timeout() const {
  std::array<char, 32> text{};
  if (call_.conf_get(cluster_, "cephsqlite_lock_renewal_timeout", text.data(), text.size()) < 0)
    return kLockTimeout;
  long long value = 0;
  const char* const end = text.data() + strnlen(text.data(), text.size());
  if (std::from_chars(text.data(), end, value).ec != std::errc() || value < 0) return kLockTimeout;
  return std::chrono::milliseconds(value);
}

// A lock that is still there after its time is renewed, so its owner lives.
Result<Ok, std::string> await_lock(const Connection& connection, const RadosPlace& place) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds longest = connection.lock_timeout() + kMargin;
  const auto end = Clock::now() + longest;
  bool told = false;
  for (;;) {
    const auto owner = connection.owner();
    if (!owner) return Failure{owner.error()};
    if (!*owner) return Ok{};
    if (!std::exchange(told, true) && place.waiting)
      place.waiting(
          static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(longest).count()));
    if (Clock::now() >= end)
      return Failure{"another server, at " + **owner +
                     ", has them and lives; end that one, or name another NAMESPACE"};
    std::this_thread::sleep_for(kPause);
  }
}

// The VFS is one for the process, and so is the context that it has.
class Vfs {
 public:
  Result<Ok, std::string> attach(const RadosPlace& place, const Connection& connection) {
    const std::lock_guard lock(mutex_);
    if (attached_ && (place.configuration != attached_->configuration || place.id != attached_->id))
      return Failure{std::string(
          "this server reaches a Ceph cluster by another conf= or id= already, maybe one that was "
          "tried in vain; name the same, or restart this server first")};
    if (attached_) return Ok{};
    if (const int failed = connection.lend_to_vfs(); failed < 0)
      return Failure{"cannot connect to the Ceph cluster: " + error_text(failed)};
    attached_ = place;
    return Ok{};
  }

 private:
  std::mutex mutex_;
  std::optional<RadosPlace> attached_;
};

}  // namespace

std::string name_of(const RadosPlace& place) {
  return "ceph:" + place.pool + (place.name_space.empty() ? "" : "/" + place.name_space);
}

std::string uri_of(const RadosPlace& place) {
  return "file:///" + place.pool + ":" + place.name_space + "/" + kFile + "?vfs=ceph";
}

Result<Ok, std::string> make_ready(const RadosPlace& place, Existing existing,
                                   const RadosLibraries& libraries) {
  const auto functions = load_rados(libraries.rados, libraries.sqlite_vfs);
  if (!functions)
    return Failure{
        "they want SQLite's module for Ceph, which is not here; install it (Debian: "
        "libsqlite3-mod-ceph): " +
        functions.error()};
  Connection connection(*functions);
  if (const auto opened = connection.open(place); !opened) return opened;
  if (existing == Existing::Wanted && !connection.has_records())
    return Failure{std::string("no server has kept any there")};
  if (const auto free = await_lock(connection, place); !free) return free;
  static Vfs vfs;
  return vfs.attach(place, connection);
}

}  // namespace stag::nfs::recovery
