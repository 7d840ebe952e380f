#include "nfs/client/session/name_space.h"

#include <algorithm>
#include <string_view>

namespace stag::nfs::client {
namespace {

constexpr OperationContext kFinding{"find the file system", {}};

// Where the next component of `path` begins, from `at` on; the size of `path` if there is none.
std::size_t next_component(std::string_view path, std::size_t at) {
  return std::min(path.find_first_not_of('/', at), path.size());
}

}  // namespace

Task<Outcome<MountPoint>> find_file_system(Protocol& protocol, Found root, std::string path) {
  std::size_t begin = next_component(path, 0);
  MountPoint found{root.handle, "/", path.substr(begin)};
  Handle at = root.handle;
  std::string walked;
  std::uint64_t file_system = root.attributes->file_system_id;
  while (begin < path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = next_component(path, end);
    if (name == ".") continue;
    if (name == "..") break;
    const Outcome<Found> next = co_await protocol.lookup(kFinding, at, name);
    if (!next && next.error().kind != Error::Kind::Nfs) co_return Failure{next.error()};
    found.wrong_security = !next && next.error().is(Status::WrongSecurity);
    if (!next || next->attributes->type != FileType::Directory) break;
    at = next->handle;
    walked.append("/").append(name);
    if (next->attributes->file_system_id == file_system) continue;
    file_system = next->attributes->file_system_id;
    found = {at, walked, path.substr(begin)};
  }
  co_return found;
}

}  // namespace stag::nfs::client
