#include "nfs/v4/ops/list_store.h"

#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/crossing.h"
#include "nfs/v4/ops/mounted_exports.h"
#include "nfs/v4/ops/store_sink.h"

namespace stag::nfs::nfs4 {

namespace {

Task<Compound::FoundAttributes> found_at(const Compound& compound, const MountedExports& exports,
                                         const PseudoFs::Node& node) {
  const auto entered = compound.look_into(node);
  if (!entered) co_return Failure{entered.error()};
  co_return co_await exports.attributes_of(node, entered->object);
}

Task<Mounted> mounted_in(const Compound& compound, ExportObject directory, AttributeSet asked,
                         const MountedExports& exports) {
  Mounted mounted;
  if (asked.empty() || !compound.has_nested_exports()) co_return mounted;
  const PseudoFs::Node* const here = co_await node_at(compound, directory, std::nullopt);
  if (here == nullptr) co_return mounted;
  for (const auto& child : here->children) {
    if (child->mounted == nullptr) continue;
    MountedHere& made = mounted.emplace(child->name, MountedHere{child.get(), {}}).first->second;
    if (!exports.asks_stores()) made.found = co_await found_at(compound, exports, *child);
  }
  co_return mounted;
}

// A store has one word for a cookie that is none and for a verifier that is not the folder's any
// more; 18.23.3 has two. A listing from the start has the verifier.
Task<v4::nfsstat4> bad_cookie(const ExportObject& directory, const vfs::Verifier& verifier) {
  struct TakesNothing final : vfs::DirectorySink {
    bool entry(const vfs::DirectoryEntry&) override { return false; }
  } nothing;
  const vfs::ListFrom start;
  const auto listed =
      co_await directory.store().list(directory.caller(), directory.handle, start, nothing);
  co_return listed && listed->verifier != verifier ? v4::NFS4ERR_NOT_SAME : v4::NFS4ERR_BAD_COOKIE;
}

Task<ReaddirResults> list_page(Compound& compound, const v4::READDIR4args& args, AttributeSet asked,
                               std::uint32_t bytes, Mounted& mounted, StoreSink::Missing& missing) {
  ReaddirResults results;
  const ExportObject directory = compound.object();
  EntryList list(bytes);
  StoreSink sink(compound, directory, asked, mounted, list);
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
  missing = std::move(sink.missing());
  if (!listed && listed.error() == vfs::Status::BadCookie)
    results.status = co_await bad_cookie(directory, args.cookieverf);
  else if (!listed)
    results.status = to_nfsstat4(listed.error());
  else if (list.too_small())
    results.status = v4::NFS4ERR_TOOSMALL;
  if (results.status != v4::NFS4_OK) co_return results;
  results.verifier = listed->verifier;
  results.eof = listed->eof;
  results.entries = list.finish();
  co_return results;
}

}  // namespace

// A page with names or exports that are not known yet is made again when they are.
Task<ReaddirResults> list_store(Compound& compound, const v4::READDIR4args& args,
                                AttributeSet asked, std::uint32_t bytes) {
  const MountedExports exports(compound, asked);
  Mounted mounted = co_await mounted_in(compound, compound.object(), asked, exports);
  bool named = false;
  for (;;) {
    StoreSink::Missing missing;
    ReaddirResults results = co_await list_page(compound, args, asked, bytes, mounted, missing);
    if (named) missing.names.clear();  // no name service knows them
    if (missing.names.empty() && missing.exports.empty()) co_return results;
    for (MountedHere* const each : missing.exports)
      each->found = co_await found_at(compound, exports, *each->node);
    if (missing.names.empty()) continue;
    named = true;
    co_await compound.learn_names(std::move(missing.names));
  }
}

}  // namespace stag::nfs::nfs4
