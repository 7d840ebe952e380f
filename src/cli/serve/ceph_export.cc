#include "cli/serve/ceph_export.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/serve/ceph_settings.h"

#ifdef STAG_CEPH
#include "vfs/ceph/ceph.h"
#endif

namespace stag::cli {
namespace {

constexpr std::string_view kScheme = "ceph:";

}  // namespace

bool serves_ceph() {
#ifdef STAG_CEPH
  return true;
#else
  return false;
#endif
}

bool is_ceph(std::string_view folder) {
  return folder.starts_with(kScheme);
}

Result<CephPlace, std::string> parse_ceph(std::string_view folder) {
  CephPlace place;
  folder.remove_prefix(kScheme.size());
  const std::size_t question = std::min(folder.find('?'), folder.size());
  place.path = folder.substr(0, question);
  if (!place.path.starts_with('/'))
    return Failure{
        fmt::format("ceph:{} is no directory of CephFS; write its path from '/' on: "
                    "ceph:/projects",
                    place.path)};
  const auto read = read_ceph_settings(folder.substr(std::min(question + 1, folder.size())),
                                       {{"conf", &place.configuration},
                                        {"id", &place.id},
                                        {"fs", &place.file_system},
                                        {"gateway", &place.gateway}},
                                       "after a directory of CephFS; there are conf=FILE, "
                                       "id=NAME, fs=NAME and gateway=NAME");
  if (!read) return Failure{read.error()};
  return place;
}

bool ends_mount(const CephPlace& served, const CephPlace& next) {
  return !served.gateway.empty() && served.gateway == next.gateway;
}

CephAttempts::Wanted CephAttempts::begin(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  std::weak_ptr<std::atomic<bool>>& last = last_[name];
  if (!last.expired()) return nullptr;
  auto wanted = std::make_shared<std::atomic<bool>>(true);
  last = wanted;
  return wanted;
}

#ifdef STAG_CEPH

namespace {

using CephOpened = Result<std::shared_ptr<vfs::FileSystem>, std::string>;

CephOpened mount_ceph(const vfs::CephFileSystem::Options& options) {
  auto opened = vfs::CephFileSystem::open(options);
  if (!opened) return Failure{opened.error()};
  return std::shared_ptr<vfs::FileSystem>(*std::move(opened));
}

}  // namespace

CephOpened open_ceph(const CephPlace& place, const std::string& name, std::uint64_t file_system_id,
                     StoreWatch& stores, CephAttempts& attempts) {
  const CephAttempts::Wanted wanted = attempts.begin(name);
  if (wanted == nullptr)
    return Failure{
        std::string("the last attempt to mount it still waits for the Ceph cluster; do its "
                    "monitors run?")};
  const std::string store = "export " + name;
  const StoreWorkers workers = stores.make(store);
  vfs::CephFileSystem::Options options;
  options.root = place.path;
  options.configuration = place.configuration;
  options.id = place.id;
  options.file_system = place.file_system;
  // Each export is a client of its own to the cluster.
  if (!place.gateway.empty()) options.gateway = place.gateway + ":" + name;
  options.wanted = wanted;
  options.file_system_id = file_system_id;
  options.workers = workers.plain;
  options.sync_workers = workers.syncing;
  auto opened = stores.ask(store, [options] { return mount_ceph(options); });
  if (!opened) wanted->store(false);
  if (!opened && opened.error() == StoreWatch::Silence::NoThread)
    return Failure{std::string("the system has no thread left to mount CephFS with")};
  if (!opened)
    return Failure{std::string("the Ceph cluster does not answer; do its monitors run?")};
  return *std::move(opened);
}

#else

Result<std::shared_ptr<vfs::FileSystem>, std::string> open_ceph(const CephPlace&,
                                                                const std::string&, std::uint64_t,
                                                                StoreWatch&, CephAttempts&) {
  return Failure{std::string(
      "this program was built without CephFS; build it where libcephfs-dev is installed")};
}

#endif

}  // namespace stag::cli
