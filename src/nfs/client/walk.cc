// The walk along a path. The server resolves one name at a time and follows no link (RFC 1813
// 3.3.3); the client puts the text of a link in the place of its name.
#include <algorithm>
#include <string_view>

#include "nfs/client/file_system.h"

namespace stag::nfs::client {
namespace {

// Takes the first component off `path`; empty when there is none.
std::string take_component(std::string& path) {
  const std::size_t begin = std::min(path.find_first_not_of('/'), path.size());
  const std::size_t end = std::min(path.find('/', begin), path.size());
  std::string component = path.substr(begin, end - begin);
  path.erase(0, end);
  return component;
}

// The part of the absolute `path` below `root`; nullopt when it is elsewhere.
std::optional<std::string_view> below(std::string_view root, std::string_view path) {
  while (root.ends_with('/')) root.remove_suffix(1);
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (!path.empty() && path.front() != '/') return std::nullopt;
  return path;
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

}  // namespace

// The state of one walk.
class Walk {
 public:
  Walk(FileSystem& files, const Handle& start, std::string path, std::uint32_t links)
      : files_(files), at_(start), path_(std::move(path)), rest_(path_), links_left_(links) {}

  Task<Outcome<Node>> run(Links links) {
    for (std::string name = take_component(rest_); !name.empty(); name = take_component(rest_)) {
      if (name == ".") continue;
      const Outcome<Node> found = co_await files_.find(at_, name, path_);
      if (!found) co_return found;
      const bool last = rest_.empty();
      if (found->attributes.type != FileType::Symlink ||
          (last && links == Links::FollowAllButLast)) {
        at_ = found->handle;
        attributes_ = found->attributes;
        continue;
      }
      const Outcome<Ok> followed = co_await follow(*found);
      if (!followed) co_return Failure{followed.error()};
    }
    if (!attributes_) {
      const Outcome<Attributes> attributes = co_await files_.getattr(at_);
      if (!attributes) co_return Failure{attributes.error()};
      attributes_ = *attributes;
    }
    co_return Node{at_, *attributes_};
  }

 private:
  Task<Outcome<Ok>> follow(const Node& link) {
    if (links_left_ == 0)
      co_return Failure{Error::of_links("cannot find " + in_quotes(path_) +
                                        ": too many symbolic links; they may lead in a circle")};
    --links_left_;
    const Outcome<std::string> target = co_await files_.readlink(link.handle, link.attributes.size);
    if (!target) co_return Failure{target.error()};
    if (target->empty()) co_return Failure{Error::of_status({"find", path_}, Status::NoEntry)};
    std::string_view text = *target;
    if (text.front() == '/') {
      const std::optional<std::string_view> inside = below(files_.root_path(), text);
      if (!inside)
        co_return Failure{Error::of_links("cannot find " + in_quotes(path_) +
                                          ": a symbolic link leads to " + in_quotes(text) +
                                          ", outside of what is mounted")};
      at_ = files_.root();
      attributes_.reset();
      text = *inside;
    }
    rest_.insert(0, text);
    co_return Ok{};
  }

  FileSystem& files_;
  Handle at_;
  std::optional<Attributes> attributes_;  // of at_, once known
  const std::string path_;
  std::string rest_;  // empty, or begins with the '/' that followed the last component
  std::uint32_t links_left_;
};

Task<Outcome<Node>> FileSystem::walk(std::string path, Links links) {
  return walk_from(root_, std::move(path), links);
}

Task<Outcome<Node>> FileSystem::walk_from(Handle directory, std::string path, Links links) {
  Walk walk(*this, directory, std::move(path), options_.max_links);
  co_return co_await walk.run(links);
}

}  // namespace stag::nfs::client
