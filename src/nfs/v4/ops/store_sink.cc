#include "nfs/v4/ops/store_sink.h"

namespace stag::nfs::nfs4 {

bool StoreSink::entry(const vfs::DirectoryEntry& entry) {
  // 18.23.3: clients make "." and ".." up themselves.
  passed_ = entry.cookie;
  if (entry.name == "." || entry.name == "..") return true;
  const auto at = mounted_.find(entry.name);
  MountedHere* const mounted = at == mounted_.end() ? nullptr : &at->second;
  const bool fits = list_.add(entry.name, entry.cookie, [&](xdr::Encoder& encoder) {
    encode_attributes_of(encoder, entry, mounted);
  });
  if (fits && mounted != nullptr && !mounted->found) missing_.exports.push_back(mounted);
  return fits;
}

void StoreSink::encode_attributes_of(xdr::Encoder& encoder, const vfs::DirectoryEntry& entry,
                                     const MountedHere* mounted) {
  // The shortest there is, so that the page that is made again reaches no others.
  if (mounted != nullptr && !mounted->found)
    return encode_attribute_error(encoder, asked_, v4::NFS4ERR_DELAY);
  if (mounted != nullptr) {
    const auto& found = *mounted->found;
    if (found) return encode_attributes(encoder, asked_, *found);
    return encode_attribute_error(encoder, asked_, found.error());
  }
  if (entry.node != nullptr) {
    AttributeSource source = compound_.source_of(directory_, entry.node->attributes);
    if (source.names != nullptr) note_names(source);
    if (wants_handle(asked_))
      source.handle = compound_.admission().handle_of(directory_, entry.node->handle);
    return encode_attributes(encoder, asked_, source);
  }
  encode_attribute_error(encoder, asked_, v4::NFS4ERR_STALE);
}

void StoreSink::note_names(const AttributeSource& source) {
  for (const IdName& each : owners_in(asked_, source))
    if (missing_.names.size() < kMostUnknown &&
        !source.names->knows(each.kind, each.id, compound_.now()))
      missing_.names.push_back(each);
}

}  // namespace stag::nfs::nfs4
