// READDIR (RFC 8881 18.23). Entries are encoded as they are found, as long as they fit.
#include <algorithm>

#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// 18.23.3: the cookies 0 to 2 are special to clients.
constexpr std::uint64_t kReservedCookies = 2;
// READDIR4resok without entries: verifier, end of the list, eof.
constexpr std::uint32_t kEmptyList = 8 + 4 + 4;

class EntryList {
 public:
  explicit EntryList(std::uint32_t bytes) : left_(bytes) {}

  // Encodes one entry, whose attributes `attributes` writes; false: it does not fit.
  template <class Attributes>
  bool add(std::string_view name, std::uint64_t cookie, Attributes attributes) {
    const xdr::Encoder::Mark before = encoder_.mark();
    const std::uint32_t begin = encoder_.position();
    encoder_.boolean(true);
    encoder_.u64(cookie + kReservedCookies);
    encoder_.string(xdr::kNoItem, name);
    attributes(encoder_);
    const std::uint32_t size = encoder_.position() - begin;
    if (size > left_) {
      encoder_.rewind(before);
      full_ = true;
      return false;
    }
    left_ -= size;
    ++count_;
    return true;
  }
  // Whether there is nothing in it because nothing fits.
  bool too_small() const { return full_ && count_ == 0; }
  bool full() const { return full_; }
  bool empty() const { return count_ == 0; }
  xdr::Stream finish() {
    encoder_.boolean(false);
    return std::move(encoder_).finish();
  }

 private:
  xdr::Encoder encoder_;
  std::uint32_t left_;
  std::uint32_t count_ = 0;
  bool full_ = false;
};

class StoreSink final : public vfs::DirectorySink {
 public:
  StoreSink(const Compound& compound, const ExportObject& directory, AttributeSet asked,
            EntryList& list)
      : compound_(compound), directory_(directory), asked_(asked), list_(list) {}

  bool entry(const vfs::DirectoryEntry& entry) override {
    // 18.23.3: clients make "." and ".." up themselves.
    passed_ = entry.cookie;
    if (entry.name == "." || entry.name == "..") return true;
    return list_.add(entry.name, entry.cookie,
                     [&](xdr::Encoder& encoder) { encode_attributes_of(encoder, entry); });
  }
  // Where to go on after what was seen so far; 0: nothing was.
  std::uint64_t passed() const { return passed_; }

 private:
  void encode_attributes_of(xdr::Encoder& encoder, const vfs::DirectoryEntry& entry) const {
    if (entry.node != nullptr) {
      AttributeSource source = compound_.source_of(directory_, entry.node->attributes);
      if (wants_handle(asked_))
        source.handle = compound_.admission().handle_of(directory_, entry.node->handle);
      return encode_attributes(encoder, asked_, source);
    }
    if (asked_.has(v4::FATTR4_RDATTR_ERROR))
      return encode_attribute_error(encoder, v4::NFS4ERR_STALE);
    AttributeSource nothing;
    encode_attributes(encoder, {}, nothing);
  }

  const Compound& compound_;
  const ExportObject& directory_;
  AttributeSet asked_;
  EntryList& list_;
  std::uint64_t passed_ = 0;
};

Task<ReaddirResults> list_store(Compound& compound, const v4::READDIR4args& args,
                                AttributeSet asked, std::uint32_t bytes) {
  ReaddirResults results;
  const ExportObject directory = compound.object();
  EntryList list(bytes);
  StoreSink sink(compound, directory, asked, list);
  vfs::ListFrom from;
  from.cookie = args.cookie == 0 ? 0 : args.cookie - kReservedCookies;
  from.verifier = args.cookieverf;
  from.with_nodes = !asked.empty();
  from.budget = bytes;
  auto listed = co_await directory.store().list(directory.caller(), directory.handle, from, sink);
  // A page of nothing but "." and "..": a client could not go on after it.
  while (listed && !listed->eof && list.empty() && !list.full() && sink.passed() != from.cookie) {
    from.cookie = sink.passed();
    from.verifier = listed->verifier;
    listed = co_await directory.store().list(directory.caller(), directory.handle, from, sink);
  }
  if (!listed)
    results.status = listed.error() == vfs::Status::BadCookie ? v4::NFS4ERR_BAD_COOKIE
                                                              : to_nfsstat4(listed.error());
  else if (list.too_small())
    results.status = v4::NFS4ERR_TOOSMALL;
  if (results.status != v4::NFS4_OK) co_return results;
  results.verifier = listed->verifier;
  results.eof = listed->eof;
  results.entries = list.finish();
  co_return results;
}

// The folders below one of the pseudo file system, those that the client may enter.
Task<ReaddirResults> list_folder(Compound& compound, const PseudoFs::Node& folder,
                                 const v4::READDIR4args& args, AttributeSet asked,
                                 std::uint32_t bytes) {
  ReaddirResults results;
  EntryList list(bytes);
  const std::uint64_t first = args.cookie == 0 ? 0 : args.cookie - kReservedCookies;
  for (std::uint64_t i = first; i < folder.children.size() && !list.full(); ++i) {
    const PseudoFs::Node& child = *folder.children[i];
    const auto entered = compound.enter(child);
    if (!entered) continue;
    const auto source = co_await compound.attributes_of(*entered, asked);
    list.add(child.name, i + 1, [&](xdr::Encoder& encoder) {
      if (source)
        encode_attributes(encoder, asked, *source);
      else
        encode_attribute_error(encoder, source.error());
    });
  }
  if (list.too_small()) results.status = v4::NFS4ERR_TOOSMALL;
  results.eof = !list.full();
  if (results.status == v4::NFS4_OK) results.entries = list.finish();
  co_return results;
}

}  // namespace

void encode(xdr::Encoder& encoder, const ReaddirResults& results) {
  encoder.u32(static_cast<std::uint32_t>(results.status));
  if (results.status != v4::NFS4_OK) return;
  encoder.fixed_opaque(results.verifier);
  encoder.append(results.entries);
  encoder.boolean(results.eof);
}

Task<ReaddirResults> readdir(Compound& compound, v4::READDIR4args& args) {
  ReaddirResults results;
  const AttributeSet asked(args.attr_request);
  const std::uint64_t room =
      std::min<std::uint64_t>({args.maxcount, kMaxTransfer, compound.results_left()});
  if (args.cookie == 1 || args.cookie == kReservedCookies)
    results.status = v4::NFS4ERR_BAD_COOKIE;
  else if (room < kEmptyList)
    results.status = v4::NFS4ERR_TOOSMALL;
  else if (!(asked & (settable_attributes() - readable_attributes())).empty())
    results.status = v4::NFS4ERR_INVAL;
  if (results.status != v4::NFS4_OK) co_return results;
  const auto bytes = static_cast<std::uint32_t>(room - kEmptyList);
  if (const auto* folder = std::get_if<const PseudoFs::Node*>(&compound.current()))
    co_return co_await list_folder(compound, **folder, args, asked, bytes);
  co_return co_await list_store(compound, args, asked, bytes);
}

}  // namespace stag::nfs::nfs4
