#include "nfs/v4/foreign_handles.h"

namespace stag::nfs::nfs4 {
namespace {

bool is_at(const OperationList::Entries& entries, std::size_t index, std::uint32_t number) {
  return index < entries.size() && entries[index].number == number &&
         entries[index].arguments != nullptr;
}

bool copies_from_another_server(const OperationList::Entries& entries, std::size_t index) {
  return is_at(entries, index, v4::OP_COPY) &&
         !static_cast<const v4::COPY4args*>(entries[index].arguments)->ca_source_server.empty();
}

}  // namespace

bool saves_source(const OperationList::Entries& entries, std::size_t index) {
  if (!is_at(entries, index, v4::OP_PUTFH) || !is_at(entries, index + 1, v4::OP_SAVEFH))
    return false;
  for (std::size_t at = index + 2; at < entries.size(); ++at) {
    if (entries[at].number == v4::OP_SAVEFH) return false;
    if (copies_from_another_server(entries, at)) return true;
  }
  return false;
}

// SAVEFH keeps it, and COPY takes it.
bool meets_foreign(const Operation& row, const Compound& compound) {
  if (is_foreign(compound.current())) return row.number != v4::OP_SAVEFH;
  return row.needs == Needs::CurrentAndSaved && is_foreign(compound.saved()) &&
         row.number != v4::OP_COPY;
}

}  // namespace stag::nfs::nfs4
