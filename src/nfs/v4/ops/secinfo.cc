// SECINFO and SECINFO_NO_NAME (RFC 8881 18.29, 18.45): the security flavors that an object takes.
// Both consume the current filehandle (2.6.3.1.1.8), which it is after SECINFO of version 4.0 as it
// was before (RFC 7530 16.31.4).
#include <algorithm>

#include "nfs/v4/ops/crossing.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/secinfo_entry.h"

namespace stag::nfs::nfs4 {

namespace {

using Flavors = std::vector<oncrpc::AuthFlavor>;

v4::SECINFO4res answer(Compound& compound, const Flavors& flavors) {
  v4::SECINFO4res results;
  for (const oncrpc::AuthFlavor flavor : flavors) results.resok4().push_back(secinfo_entry(flavor));
  compound.set_current({});
  return results;
}

// Adds what the exports below a folder take of this client. False: some of them do not know the
// client yet.
bool add_flavors_below(const PseudoFs::Node& folder, const rpc::Origin& origin, Flavors& flavors) {
  bool decided = true;
  for (const auto& child : folder.children) {
    const Export::Terms terms =
        child->mounted == nullptr ? Export::Terms{} : child->mounted->terms_for(origin);
    if (terms.options != nullptr)
      for (const oncrpc::AuthFlavor flavor : terms.options->flavors)
        if (!std::ranges::count(flavors, flavor)) flavors.push_back(flavor);
    decided = add_flavors_below(*child, origin, flavors) && decided && !terms.undecided;
  }
  return decided;
}

// RFC 7530 7.8: folders of the pseudo file system take what any export below them does.
v4::SECINFO4res answer(Compound& compound) {
  if (const auto* of_export = std::get_if<ExportObject>(&compound.current()))
    return answer(compound, of_export->options->flavors);
  Flavors flavors;
  if (!add_flavors_below(*std::get<const PseudoFs::Node*>(compound.current()),
                         compound.admission().call().origin(), flavors))
    return {v4::NFS4ERR_DELAY, {}};
  return answer(compound, flavors.empty() ? ExportOptions{}.flavors : flavors);
}

// 2.6.3.1.1.5: of an export that the caller's own flavor does not lead into, too.
v4::SECINFO4res answer(Compound& compound, const PseudoFs::Node& mounted) {
  const auto entered = compound.enter(mounted, Compound::Security::Deferred);
  if (entered && std::holds_alternative<const PseudoFs::Node*>(*entered)) {
    compound.set_current(*entered);
    return answer(compound);
  }
  const Export::Terms terms = mounted.mounted->terms_for(compound.admission().call().origin());
  if (terms.options == nullptr)
    return {terms.undecided ? v4::NFS4ERR_DELAY : v4::NFS4ERR_ACCESS, {}};
  return answer(compound, terms.options->flavors);
}

// 2.6.3.1.1.5: neither of the two minds the caller's flavor, and nothing behind them has the
// filehandle that they leave.
void mind_no_security(Compound& compound) {
  if (!has_wrong_security(compound.current())) return;
  ExportObject object = compound.object();
  object.wrong_security = false;
  compound.set_current(object);
}

Task<v4::SECINFO4res> secinfo_of(Compound& compound, v4::SECINFO4args& args) {
  const PseudoFs::Node* const child = co_await child_here(compound, args.name);
  if (child != nullptr && child->mounted != nullptr) co_return answer(compound, *child);
  mind_no_security(compound);
  v4::LOOKUP4args name{args.name};
  const v4::LOOKUP4res found = co_await lookup(compound, name);
  if (found.status != v4::NFS4_OK) co_return v4::SECINFO4res{found.status, {}};
  co_return answer(compound);
}

}  // namespace

Task<v4::SECINFO4res> secinfo(Compound& compound, v4::SECINFO4args& args) {
  const Object directory = compound.current();
  v4::SECINFO4res results = co_await secinfo_of(compound, args);
  if (results.status == v4::NFS4_OK && compound.minor() == 0) compound.set_current(directory);
  co_return results;
}

Task<v4::SECINFO_NO_NAME4res> secinfo_no_name(Compound& compound, v4::SECINFO_NO_NAME4args& style) {
  if (style != v4::SECINFO_STYLE4_PARENT) co_return answer(compound);
  const PseudoFs::Node* here = node_here(compound);
  const PseudoFs::Node* above = here != nullptr ? PseudoFs::export_above(*here) : nullptr;
  if (above != nullptr) co_return answer(compound, *above);
  mind_no_security(compound);
  const v4::LOOKUPP4res found = co_await lookupp(compound);
  if (found.status != v4::NFS4_OK) co_return v4::SECINFO_NO_NAME4res{found.status, {}};
  co_return answer(compound);
}

}  // namespace stag::nfs::nfs4
