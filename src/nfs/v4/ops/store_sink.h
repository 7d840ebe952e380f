// Makes entries of a READDIR reply of what a store lists.
#pragma once

#include <map>
#include <vector>

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/ops/entry_list.h"

namespace stag::nfs::nfs4 {

// The exports that are mounted in one folder, by name: what a listing shows in place of what they
// cover, so that a client that keeps the filehandles of a listing crosses, too.
using Mounted = std::map<std::string_view, Result<AttributeSource, v4::nfsstat4>>;

class StoreSink final : public vfs::DirectorySink {
 public:
  StoreSink(const Compound& compound, const ExportObject& directory, AttributeSet asked,
            const Mounted& mounted, EntryList& list)
      : compound_(compound), directory_(directory), asked_(asked), mounted_(mounted), list_(list) {}

  bool entry(const vfs::DirectoryEntry& entry) override;
  // Where to go on after what was seen so far; 0: nothing was.
  std::uint64_t passed() const { return passed_; }
  // Owners of entries whose names are still to be asked for.
  std::vector<IdName>& unknown() { return unknown_; }

 private:
  void encode_attributes_of(xdr::Encoder& encoder, const vfs::DirectoryEntry& entry);
  void note_names(const AttributeSource& source);
  void encode_error(xdr::Encoder& encoder, v4::nfsstat4 status) const;

  const Compound& compound_;
  const ExportObject& directory_;
  AttributeSet asked_;
  const Mounted& mounted_;
  EntryList& list_;
  std::uint64_t passed_ = 0;
  static constexpr std::size_t kMostUnknown = 64;
  std::vector<IdName> unknown_;
};

}  // namespace stag::nfs::nfs4
