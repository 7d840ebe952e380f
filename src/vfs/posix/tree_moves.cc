// Entries that are removed or moved: remove, rmdir, rename.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "vfs/name.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {

Outcome<Change> Tree::unlink(const Credentials& who, const Handle& directory, std::string_view name,
                             int flags) {
  if (const auto fault = fault_of_old_name(name, limits_.max_name)) return Failure{*fault};
  const auto parent = resolve_directory(directory);
  if (!parent) return Failure{parent.error()};
  if (const auto prepared = prepare_sync(**parent); !prepared) return Failure{prepared.error()};
  Observation observation(*this, *parent);
  if (!observation.before()) return Failure{observation.before().error()};
  // As long as it is open no other one gets its number.
  const auto removed = open_entry(**parent, name);
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    if (::unlinkat((*parent)->path.fd(), std::string(name).c_str(), flags) != 0) {
      // POSIX lets a directory that is not empty be Exists.
      return Failure{errno == EEXIST ? Status::NotEmpty : status_of(errno)};
    }
  }
  if (removed) {
    forget(**parent, name, removed->object->handle);
    drop_entry(*removed->object);
  }
  if (const auto fault = sync(**parent)) return Failure{*fault};
  return observation.finish();
}

Outcome<Change> Tree::remove(const Credentials& who, const Handle& directory,
                             std::string_view name) {
  return unlink(who, directory, name, 0);
}

Outcome<Change> Tree::rmdir(const Credentials& who, const Handle& directory,
                            std::string_view name) {
  return unlink(who, directory, name, AT_REMOVEDIR);
}

namespace {

// RFC 1813 3.3.14: a target of the other kind is Exists. That the parents are directories is known
// by now.
Status rename_status(int error) {
  if (error == ENOTDIR || error == EISDIR) return Status::Exists;
  if (error == EEXIST) return Status::NotEmpty;
  return status_of(error);
}

}  // namespace

Outcome<Renamed> Tree::rename(const Credentials& who, const Handle& from_directory,
                              std::string_view from, const Handle& to_directory,
                              std::string_view to) {
  if (const auto fault = fault_of_old_name(from, limits_.max_name)) return Failure{*fault};
  if (const auto fault = fault_of_old_name(to, limits_.max_name)) return Failure{*fault};
  const auto source = resolve_directory(from_directory);
  if (!source) return Failure{source.error()};
  const auto target = resolve_directory(to_directory);
  if (!target) return Failure{target.error()};
  for (const ObjectRef& changed : {*source, *target})
    if (const auto prepared = prepare_sync(*changed); !prepared) return Failure{prepared.error()};
  Observation from_observation(*this, *source);
  std::optional<Observation> to_observation;
  if (*source != *target) to_observation.emplace(*this, *target);
  if (!from_observation.before()) return Failure{from_observation.before().error()};
  if (to_observation && !to_observation->before()) return Failure{to_observation->before().error()};
  const auto moved = open_entry(**source, from);
  const auto replaced = open_entry(**target, to);
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    if (::renameat((*source)->path.fd(), std::string(from).c_str(), (*target)->path.fd(),
                   std::string(to).c_str()) != 0)
      return Failure{rename_status(errno)};
  }
  if (moved) {
    (void)attributes_after_change(*moved->object);
    remember(**target, to, moved->object->handle);
    const bool same_object = replaced && replaced->object->handle == moved->object->handle;
    if (!same_object) forget(**source, from, moved->object->handle);
    if (replaced && !same_object) drop_entry(*replaced->object);
  }
  if (const auto fault = sync(**target)) return Failure{*fault};
  if (to_observation) {
    if (const auto fault = sync(**source)) return Failure{*fault};
  }
  Renamed renamed;
  renamed.from = from_observation.finish();
  renamed.to = to_observation ? to_observation->finish() : renamed.from;
  return renamed;
}

}  // namespace stag::vfs::posix
