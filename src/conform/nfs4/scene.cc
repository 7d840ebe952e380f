#include "conform/nfs4/scene.h"

#include <fmt/format.h>

namespace stag::conform::nfs4 {
namespace {

constexpr std::uint32_t kAllOnes = ~std::uint32_t{0};

v4::stateid4 filled(std::uint32_t seqid, unsigned char byte) {
  v4::stateid4 made;
  made.seqid = seqid;
  made.other.fill(std::byte{byte});
  return made;
}

}  // namespace

const v4::nfs_fh4& Scene::handle(std::string_view name) {
  if (const auto own = handles.find(name); own != handles.end()) return own->second;
  if (const auto shared = fixtures_.find(name); shared != fixtures_.end()) return shared->second;
  static const v4::nfs_fh4 kNone{};
  trouble = fmt::format("there is no filehandle '{}'", name);
  return kNone;
}

ClientOptions Scene::other_client(std::string_view name, bool called_back) const {
  ClientOptions options = client.options();
  options.called_back = called_back;
  options.owner = fmt::format("{} {}", label, name);
  return options;
}

// RFC 8881 8.2.3, RFC 7530 9.1.4.3: the special stateids.
v4::stateid4 Scene::stateid(std::string_view name) {
  if (name == "anonymous") return {};
  if (name == "bypass") return filled(kAllOnes, 0xff);
  if (name == "current") return filled(1, 0);
  if (name == "invalid") return filled(kAllOnes, 0);
  if (name == "garbage") return filled(1, 0x5a);
  int step = 0;
  if (name.starts_with("old ")) step = -1;
  if (name.starts_with("future ")) step = 1;
  if (step != 0) name.remove_prefix(name.find(' ') + 1);
  const auto found = states.find(name);
  if (found == states.end()) {
    trouble = fmt::format("there is no stateid '{}'", name);
    return {};
  }
  v4::stateid4 made = found->second;
  made.seqid += static_cast<std::uint32_t>(step);
  return made;
}

const std::string& Scene::owner_of(std::string_view state) {
  if (state.starts_with("old ") || state.starts_with("future "))
    state.remove_prefix(state.find(' ') + 1);
  return owner_of_[std::string(state)];
}

v4::state_owner4 Scene::owner(std::string_view name) const {
  return {client.clientid(), Rope::copy_of(bytes_of(fmt::format("{} {}", label, name)))};
}

v4::seqid4 Scene::seqid(std::string_view owner) const {
  if (minor() > 0) return 0;
  const auto found = seqids_.find(owner);
  return found == seqids_.end() ? 0 : found->second;
}

}  // namespace stag::conform::nfs4
