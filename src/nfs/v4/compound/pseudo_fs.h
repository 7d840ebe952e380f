// The pseudo file system (RFC 8881 7.3): the folders that lead from the root of the server to its
// exports, so that a client walks from PUTROOTFH to any of them. Made of one Exports and constant;
// it keeps none of their file systems.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nfs/export/exports.h"
#include "nfs/export/file_handle.h"
#include "nfs/export/server_context.h"

namespace stag::nfs::nfs4 {

class PseudoFs {
 public:
  struct Node {
    std::string name;  // empty for the root
    // Follows from the path and the server's key: the same after restarts and reloads. Its fileid
    // too.
    std::uint64_t id = 0;
    const Node* parent = nullptr;  // null for the root
    // What a client finds here instead, if anything: its id and its terms.
    const Export* mounted = nullptr;
    std::vector<std::unique_ptr<Node>> children{};  // in the order of the exports
    std::vector<const Node*> entries{};             // the same by their cookies, to be listed
    // Where an export is mounted: the nodes below it, down to the next exports, that lead to those.
    std::vector<const Node*> inner{};

    // Null when there is none.
    const Node* child(std::string_view name) const;
    // Of its entry in a listing: the same whichever others come and go. Never 0, and of less than
    // 63 bits, which is what some clients have for it.
    std::uint64_t cookie() const { return 1 + (id >> 2); }
  };

  // `epoch` rises with each start of the server.
  PseudoFs(const Exports& exports, const FileHandles& handles, std::uint32_t epoch);

  const Node& root() const { return root_; }
  // Null when there is none.
  const Node* find(std::uint64_t id) const;
  // Where an export is mounted; null: these Exports do not have it.
  const Node* node_of(const Export& mounted) const;
  // The nearest node above that an export is mounted at; null: there is none.
  static const Node* export_above(const Node& node);
  // The names that lead from a node down to one below it.
  static std::vector<std::string_view> way(const Node& from, const Node& to);
  // Rises whenever the exports are replaced, by two or more: with the same paths others may be open
  // to a client.
  std::uint64_t change() const { return change_; }

  // File handles of nodes have an export id that no export has.
  static FileHandles::Sealed seal(const FileHandles& handles, const Node& node);
  // The node's id; nullopt for the handles of exports.
  static std::optional<std::uint64_t> id_of(const FileHandles::Parts& handle);

 private:
  Node& make(std::string_view path, const FileHandles& handles);

  std::vector<Export> exports_;  // without file systems
  Node root_;
  const std::uint64_t change_;
};

}  // namespace stag::nfs::nfs4
