#include "nfs/server/mount/mount_path.h"

#include <string>
#include <vector>

namespace stag::nfs::mount {

namespace {

// Linux has the same two limits (path_resolution(7)).
constexpr unsigned kMaxLinks = 40;
constexpr std::size_t kMaxPath = 4096;
// Links of many components could ask for a hundred thousand lookups.
constexpr unsigned kMaxSteps = 2048;

// Takes the first component off. Empty between two slashes.
std::string_view take_component(std::string_view& path) {
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view component = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return component;
}

std::string_view without_slashes(std::string_view path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return path;
}

// The part of the absolute path `target` behind `folder`; nullopt when `target` is not below it.
std::optional<std::string_view> below(std::string_view folder, std::string_view target) {
  while (!(folder = without_slashes(folder)).empty()) {
    target = without_slashes(target);
    if (take_component(folder) != take_component(target)) return std::nullopt;
  }
  return target;
}

class Walk {
 public:
  explicit Walk(const ExportObject& root, std::string_view path) : root_(root), rest_(path) {}

  Task<vfs::Outcome<vfs::Handle>> run() {
    const auto attributes = co_await root_.store().attributes(root_.caller(), root_.handle);
    if (!attributes) co_return Failure{attributes.error()};
    here_ = root_node_ = {root_.handle, *attributes};
    for (unsigned steps = 0; !rest_.empty(); ++steps) {
      if (steps == kMaxSteps) co_return Failure{vfs::Status::NameTooLong};
      if (!is_directory(here_)) co_return Failure{vfs::Status::NotDirectory};
      std::string_view path = rest_;
      const std::string component(take_component(path));
      rest_ = std::string(path);
      const std::optional<vfs::Status> fault = co_await step(component);
      if (fault) co_return Failure{*fault};
    }
    if (!is_directory(here_)) co_return Failure{vfs::Status::NotDirectory};
    co_return here_.handle;
  }

 private:
  static bool is_directory(const vfs::Node& node) {
    return node.attributes.type == vfs::FileType::Directory;
  }

  Task<std::optional<vfs::Status>> step(const std::string& component) {
    if (component.empty() || component == ".") co_return std::nullopt;
    if (component == "..") co_return ascend();
    const auto found = co_await root_.store().lookup(root_.caller(), here_.handle, component);
    if (!found) co_return found.error();
    if (found->node.attributes.type != vfs::FileType::Symlink) {
      above_.push_back(here_);
      here_ = found->node;
      co_return std::nullopt;
    }
    const auto link = co_await root_.store().readlink(root_.caller(), found->node.handle);
    if (!link) co_return link.error();
    co_return follow(link->target);
  }

  // By the way we came: above the root is no export.
  std::optional<vfs::Status> ascend() {
    if (above_.empty()) return vfs::Status::NoEntry;
    here_ = above_.back();
    above_.pop_back();
    return std::nullopt;
  }

  std::optional<vfs::Status> follow(std::string_view target) {
    if (++links_ > kMaxLinks) return vfs::Status::NoEntry;
    if (target.size() + rest_.size() >= kMaxPath) return vfs::Status::NameTooLong;
    if (target.starts_with('/')) {
      std::optional<std::string_view> inside;
      for (const std::string& folder : root_.export_->spec.folders)
        if (!inside) inside = below(folder, target);
      if (!inside) return vfs::Status::NoEntry;
      target = *inside;
      above_.clear();
      here_ = root_node_;
    }
    rest_ = std::string(target) + "/" + rest_;
    return std::nullopt;
  }

  const ExportObject& root_;
  std::string rest_;
  vfs::Node root_node_;
  vfs::Node here_;
  std::vector<vfs::Node> above_;  // from the root to the parent of here_
  unsigned links_ = 0;
};

}  // namespace

Task<vfs::Outcome<vfs::Handle>> directory_at(const ExportObject& root, std::string_view rest) {
  Walk walk(root, rest);
  co_return co_await walk.run();
}

}  // namespace stag::nfs::mount
