#include "nfs/v4/compound/pseudo_fs.h"

#include <algorithm>

namespace stag::nfs::nfs4 {

namespace {

constexpr std::uint32_t kNoExport = 0;

const PseudoFs::Node* find_below(const PseudoFs::Node& node, std::uint64_t id) {
  if (node.id == id) return &node;
  for (const auto& child : node.children)
    if (const PseudoFs::Node* found = find_below(*child, id)) return found;
  return nullptr;
}

void add_inner(const PseudoFs::Node& below, std::vector<const PseudoFs::Node*>& inner) {
  for (const auto& child : below.children) {
    if (child->mounted != nullptr) continue;
    inner.push_back(child.get());
    add_inner(*child, inner);
  }
}

void note_entries(PseudoFs::Node& node) {
  for (const auto& child : node.children) {
    node.entries.push_back(child.get());
    note_entries(*child);
  }
  std::ranges::sort(node.entries, {}, &PseudoFs::Node::cookie);
}

void note_inner(PseudoFs::Node& node) {
  if (node.mounted != nullptr) add_inner(node, node.inner);
  for (const auto& child : node.children) note_inner(*child);
}

}  // namespace

const PseudoFs::Node* PseudoFs::Node::child(std::string_view wanted) const {
  for (const auto& child : children)
    if (child->name == wanted) return child.get();
  return nullptr;
}

PseudoFs::PseudoFs(const Exports& exports, const FileHandles& handles, std::uint32_t epoch)
    : change_((std::uint64_t{epoch} << 32) + 2 * std::uint64_t{exports.generation()}) {
  root_.id = handles.file_system_id("/");
  exports_.reserve(exports.all().size());
  for (const Export& each : exports.all()) {
    exports_.push_back(
        {each.id, {each.path(), nullptr, each.spec.options, each.spec.clients}, each.store});
    make(each.path(), handles).mounted = &exports_.back();
  }
  note_entries(root_);
  note_inner(root_);
}

PseudoFs::Node& PseudoFs::make(std::string_view path, const FileHandles& handles) {
  Node* at = &root_;
  for (std::size_t end = 0; end < path.size();) {
    const std::size_t begin = end + 1;
    end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name.empty()) continue;
    const auto there = std::ranges::find(at->children, name, &Node::name);
    if (there != at->children.end()) {
      at = there->get();
      continue;
    }
    auto made = std::make_unique<Node>();
    made->name = name;
    made->id = handles.file_system_id(path.substr(0, end));
    made->parent = at;
    at = at->children.emplace_back(std::move(made)).get();
  }
  return *at;
}

const PseudoFs::Node* PseudoFs::find(std::uint64_t id) const {
  return find_below(root_, id);
}

const PseudoFs::Node* PseudoFs::node_of(const Export& mounted) const {
  const Node* at = &root_;
  std::string_view path = mounted.path();
  while (at != nullptr && (at->mounted == nullptr || at->mounted->id != mounted.id)) {
    if (path.size() < 2) return nullptr;
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    at = at->child(name);
    path.remove_prefix(name.size());
  }
  return at;
}

const PseudoFs::Node* PseudoFs::export_above(const Node& node) {
  const Node* at = node.parent;
  while (at != nullptr && at->mounted == nullptr) at = at->parent;
  return at;
}

std::vector<std::string_view> PseudoFs::way(const Node& from, const Node& to) {
  std::vector<std::string_view> names;
  for (const Node* at = &to; at != &from; at = at->parent) names.insert(names.begin(), at->name);
  return names;
}

FileHandles::Sealed PseudoFs::seal(const FileHandles& handles, const Node& node) {
  std::array<std::byte, 8> id;
  store_be(id.data(), node.id);
  return handles.seal(kNoExport, *vfs::Handle::from(id));
}

std::optional<std::uint64_t> PseudoFs::id_of(const FileHandles::Parts& handle) {
  if (handle.export_id != kNoExport || handle.object.size() != 8) return std::nullopt;
  return load_be<std::uint64_t>(handle.object.data());
}

}  // namespace stag::nfs::nfs4
