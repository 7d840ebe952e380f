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

// What of the absolute `path` lies below `root`; nothing when it is elsewhere.
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
  Walk(FileSystem& files, Caller& caller, const Handle& start, std::string path,
       std::uint32_t links)
      : files_(files),
        caller_(caller),
        at_(start),
        path_(std::move(path)),
        rest_(path_),
        links_left_(links) {}

  Task<Outcome<Node>> run(Links links) {
    for (std::string name = take_component(rest_); !name.empty(); name = take_component(rest_)) {
      if (name == ".") continue;
      const Outcome<Node> found = co_await step(name);
      if (!found) co_return found;
      const bool last = rest_.empty();
      if (found->attributes.type != v3::NF3LNK || (last && links == Links::FollowAllButLast)) {
        at_ = found->handle;
        attributes_ = found->attributes;
        continue;
      }
      const Outcome<Ok> followed = co_await follow(*found);
      if (!followed) co_return Failure{followed.error()};
    }
    if (!attributes_) {
      const Outcome<Attributes> told = co_await files_.getattr(at_);
      if (!told) co_return Failure{told.error()};
      attributes_ = *told;
    }
    co_return Node{at_, *attributes_};
  }

 private:
  Task<Outcome<Node>> step(const std::string& name) {
    v3::LOOKUP3args args;
    args.what.dir = at_;
    args.what.name = name;
    const auto resok = co_await caller_.call<v3::NFSPROC3_LOOKUP>(args, {"find", path_});
    if (!resok) co_return Failure{resok.error()};
    Node node;
    node.handle = resok->object;
    if (resok->obj_attributes.attributes_follow) {
      node.attributes = resok->obj_attributes.attributes();
      co_return node;
    }
    const Outcome<Attributes> told = co_await files_.getattr(node.handle);
    if (!told) co_return Failure{told.error()};
    node.attributes = *told;
    co_return node;
  }

  Task<Outcome<Ok>> follow(const Node& link) {
    if (links_left_ == 0)
      co_return Failure{Error::of_links("cannot find " + in_quotes(path_) +
                                        ": too many symbolic links; they may lead in a circle")};
    --links_left_;
    const Outcome<std::string> target = co_await files_.readlink(link.handle, link.attributes.size);
    if (!target) co_return Failure{target.error()};
    if (target->empty()) co_return Failure{Error::of_status({"find", path_}, v3::NFS3ERR_NOENT)};
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
  Caller& caller_;
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
  Walk walk(*this, caller_, directory, std::move(path), options_.max_links);
  co_return co_await walk.run(links);
}

Task<Outcome<Node>> FileSystem::lookup(Handle directory, std::string name) {
  v3::LOOKUP3args args;
  args.what.dir = directory;
  args.what.name = name;
  const auto resok = co_await caller_.call<v3::NFSPROC3_LOOKUP>(args, {"find", name});
  if (!resok) co_return Failure{resok.error()};
  co_return co_await with_attributes(resok->object, resok->obj_attributes);
}

Task<Outcome<Node>> FileSystem::with_attributes(const Handle& handle,
                                                const v3::post_op_attr& attributes) {
  Node node;
  node.handle = handle;
  if (attributes.attributes_follow) {
    node.attributes = attributes.attributes();
    co_return node;
  }
  const Outcome<Attributes> told = co_await getattr(handle);
  if (!told) co_return Failure{told.error()};
  node.attributes = *told;
  co_return node;
}

}  // namespace stag::nfs::client
