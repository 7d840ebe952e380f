#include "nfs/recovery/rados_functions.h"

#include <sqlite3.h>

#include <memory>

#include "base/loaded_library.h"

namespace stag::nfs::recovery {
namespace {

void find_rados(LoadedLibrary& library, RadosFunctions& functions) {
  library.find("rados_create", functions.create)
      .find("rados_conf_read_file", functions.conf_read_file)
      .find("rados_conf_get", functions.conf_get)
      .find("rados_connect", functions.connect)
      .find("rados_shutdown", functions.shutdown)
      .find("rados_cct", functions.cct)
      .find("rados_ioctx_create", functions.ioctx_create)
      .find("rados_ioctx_destroy", functions.ioctx_destroy)
      .find("rados_ioctx_set_namespace", functions.ioctx_set_namespace)
      .find("rados_stat", functions.stat)
      .find("rados_list_lockers", functions.list_lockers);
}

// SQLite itself has to load it, since it hands the extension its own functions: by a connection
// that does nothing else. The VFS outlives that. Empty: it is registered.
std::string register_vfs(const std::string& library) {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open(":memory:", &opened);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> connection(opened, sqlite3_close);
  if (status != SQLITE_OK) return "out of memory";
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, nullptr);
  char* error = nullptr;
  const int loaded =
      sqlite3_load_extension(opened, library.c_str(), "sqlite3_cephsqlite_init", &error);
  const std::unique_ptr<char, decltype(&sqlite3_free)> text(error, sqlite3_free);
  if (loaded == SQLITE_OK) return {};
  return text != nullptr ? text.get() : sqlite3_errmsg(opened);
}

}  // namespace

Result<RadosFunctions, std::string> load_rados(const std::string& rados,
                                               const std::string& sqlite_vfs) {
  RadosFunctions functions;
  LoadedLibrary vfs(sqlite_vfs);
  vfs.find("cephsqlite_setcct", functions.set_vfs_context);
  if (!vfs.failure().empty()) return Failure{vfs.failure()};
  LoadedLibrary library(rados);
  find_rados(library, functions);
  if (!library.failure().empty()) return Failure{library.failure()};
  if (std::string failure = register_vfs(sqlite_vfs); !failure.empty())
    return Failure{std::move(failure)};
  return functions;
}

}  // namespace stag::nfs::recovery
