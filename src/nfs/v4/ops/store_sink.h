// Makes entries of a READDIR reply of what a store lists.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/ops/entry_list.h"

namespace stag::nfs::nfs4 {

// An export that is mounted in a folder: what a listing shows in place of what it covers, so that a
// client that keeps the filehandles of a listing crosses, too.
struct MountedHere {
  const PseudoFs::Node* node;
  std::optional<Result<AttributeSource, v4::nfsstat4>> found;  // nullopt: no page has reached it
};
// Those of one folder, by name.
using Mounted = std::map<std::string_view, MountedHere>;

class StoreSink final : public vfs::DirectorySink {
 public:
  StoreSink(const Compound& compound, const ExportObject& directory, AttributeSet asked,
            Mounted& mounted, EntryList& list)
      : compound_(compound), directory_(directory), asked_(asked), mounted_(mounted), list_(list) {}

  bool entry(const vfs::DirectoryEntry& entry) override;
  // Where to go on after what was seen so far; 0: nothing was.
  std::uint64_t passed() const { return passed_; }
  // What is still to be asked for.
  struct Missing {
    std::vector<IdName> names;  // of owners of entries
    std::vector<MountedHere*> exports;
  };
  Missing& missing() { return missing_; }

 private:
  // Null: nothing is mounted there.
  void encode_attributes_of(xdr::Encoder& encoder, const vfs::DirectoryEntry& entry,
                            const MountedHere* mounted);
  void note_names(const AttributeSource& source);

  const Compound& compound_;
  const ExportObject& directory_;
  AttributeSet asked_;
  Mounted& mounted_;
  EntryList& list_;
  std::uint64_t passed_ = 0;
  static constexpr std::size_t kMostUnknown = 64;
  Missing missing_;
};

}  // namespace stag::nfs::nfs4
