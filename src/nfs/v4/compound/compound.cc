#include "nfs/v4/compound/compound.h"

#include <algorithm>
#include <span>

#include "nfs/acl/owner_name.h"
#include "nfs/v4/compound/status.h"

namespace stag::nfs::nfs4 {

namespace {

// 16.2.3.1.2: the special stateid that stands for the current one.
bool means_current(const v4::stateid4& stateid) {
  return stateid.seqid == 1 &&
         std::ranges::all_of(stateid.other, [](std::byte byte) { return byte == std::byte{0}; });
}

constexpr std::uint32_t kFolderMode = 0555;

constexpr char kByKerberos[] = "gss:";

// Whether the pseudo file system leads from this folder to an export that the client may enter.
bool leads_on(const PseudoFs::Node& folder, const rpc::Origin& origin) {
  return std::ranges::any_of(folder.children, [&](const auto& child) {
    return (child->mounted != nullptr && child->mounted->terms_for(origin).options != nullptr) ||
           leads_on(*child, origin);
  });
}

// Whether it is not known yet what the client may enter below this folder.
bool is_undecided(const PseudoFs::Node& folder, const rpc::Origin& origin) {
  return std::ranges::any_of(folder.children, [&](const auto& child) {
    return (child->mounted != nullptr && child->mounted->terms_for(origin).undecided) ||
           is_undecided(*child, origin);
  });
}

// 6.2.1.5, those that this server has.
bool is_special(std::string_view who) {
  return who == "OWNER@" || who == "GROUP@" || who == "EVERYONE@";
}

}  // namespace

const PseudoFs& Compound::pseudo_fs() const {
  if (pseudo_fs_ == nullptr) pseudo_fs_ = shared_.pseudo_fs();
  return *pseudo_fs_;
}

std::string Compound::principal() const {
  const rpc::Caller& caller = admission_.call().caller();
  // A name is one principal, whatever service protects its calls.
  if (caller.name) return kByKerberos + *caller.name;
  return std::to_string(static_cast<std::uint32_t>(caller.flavor)) + ":" +
         std::to_string(caller.uid);
}

bool Compound::names_by_kerberos(std::string_view principal) {
  return principal.starts_with(kByKerberos);
}

bool Compound::has_integrity() const {
  const oncrpc::AuthFlavor flavor = admission_.call().caller().flavor;
  return flavor == oncrpc::AuthFlavor::KRB5I || flavor == oncrpc::AuthFlavor::KRB5P;
}

std::uint64_t Compound::number_of_name(std::uint32_t flavor, const std::string& name) {
  SipHash hash(process_sip_key());
  hash.add(std::as_bytes(std::span(&flavor, 1)));
  hash.add(bytes_of(name));
  return hash.finish();
}

Result<v4::stateid4, v4::nfsstat4> Compound::meant(const v4::stateid4& argument) const {
  if (!means_current(argument)) return argument;
  auto current = meant_with_seqid(argument);
  // With seqid 0 the invalid one that CLOSE leaves would be the anonymous one.
  const bool special = current && current->other == v4::stateid4{}.other;
  if (current && !special) current->seqid = 0;
  return current;
}

Result<v4::stateid4, v4::nfsstat4> Compound::meant_with_seqid(const v4::stateid4& argument) const {
  if (!means_current(argument)) return argument;
  if (minor_ == 0) return Failure{v4::NFS4ERR_BAD_STATEID};  // RFC 7530 9.1.4.4
  if (current_stateid_ == v4::stateid4{}) return Failure{v4::NFS4ERR_BAD_STATEID};
  return current_stateid_;
}

v4::nfsstat4 Compound::put(Bytes filehandle) {
  const auto parts = shared_.server.handles.parts_of(filehandle);
  if (!parts) return v4::NFS4ERR_BADHANDLE;
  if (const auto id = PseudoFs::id_of(*parts)) {
    const PseudoFs::Node* node = pseudo_fs().find(*id);
    if (node == nullptr) return v4::NFS4ERR_STALE;
    auto entered = enter(*node, security_);
    if (!entered) return entered.error();
    set_current(*std::move(entered));
    return v4::NFS4_OK;
  }
  const Export* found = admission_.exports().meet(parts->export_id);
  if (found == nullptr) return v4::NFS4ERR_STALE;
  const auto admitted = admission_.terms_of(*found, security_);
  if (!admitted) return to_nfsstat4(admitted.error());
  // Made where it stays: it is large.
  const rpc::CallContext& call = admission_.call();
  current_.emplace<ExportObject>(*found, *vfs::Handle::from(parts->object), *admitted,
                                 call.origin(), call.caller(), call.worker_time());
  current_stateid_ = {};
  return v4::NFS4_OK;
}

bool Compound::set_current_unreachable(Bytes filehandle) {
  const auto opened = shared_.server.handles.open(filehandle);
  if (!opened) return false;
  unreachable_ = admission_.exports().share(opened->export_id);
  if (unreachable_ == nullptr) {
    const auto present = shared_.server.exports.current();
    const Export* const removed = present->find_removed(opened->export_id);
    if (removed == nullptr) return false;
    unreachable_ = std::make_shared<const Export>(*removed);
  }
  ExportObject object;
  object.export_ = unreachable_.get();
  object.handle = opened->object;
  set_current(object);
  return true;
}

Result<Object, v4::nfsstat4> Compound::enter(const PseudoFs::Node& node, Security security) const {
  auto entered = look_into(node, security);
  if (!entered) return Failure{entered.error()};
  admission_.exports().meet(std::move(entered->kept));
  return std::move(entered->object);
}

Result<Compound::Entered, v4::nfsstat4> Compound::look_into(const PseudoFs::Node& node,
                                                            Security security) const {
  if (node.mounted == nullptr) return Entered{&node};
  // RFC 8881 7.3: a client that is kept out of the export above sees but the way to what is below.
  const rpc::Origin& origin = admission_.call().origin();
  const Export::Terms terms = node.mounted->terms_for(origin);
  if (terms.options == nullptr && !terms.undecided && leads_on(node, origin)) return Entered{&node};
  auto kept = admission_.exports().share(node.mounted->id);
  if (kept == nullptr) return Failure{v4::NFS4ERR_STALE};
  auto object = admission_.admit(*kept, kept->file_system().root(), security);
  if (!object) return Failure{to_nfsstat4(object.error())};
  return Entered{*std::move(object), std::move(kept)};
}

FileHandles::Sealed Compound::handle_of(const Object& object) const {
  if (const auto* node = std::get_if<const PseudoFs::Node*>(&object))
    return PseudoFs::seal(shared_.server.handles, **node);
  const auto& of_export = std::get<ExportObject>(object);
  return admission_.handle_of(of_export, of_export.handle);
}

AttributeSource Compound::source_of(const PseudoFs::Node& node) const {
  AttributeSource source;
  source.attributes.type = vfs::FileType::Directory;
  source.attributes.mode = kFolderMode;
  source.attributes.links = static_cast<std::uint32_t>(2 + node.children.size());
  source.attributes.file_id = node.id;
  // What is not decided is left out of a listing, which is to be fetched again when it is.
  const rpc::CallContext& call = admission_.call();
  const bool decided = !call.caller().groups_undecided && !is_undecided(node, call.origin());
  source.attributes.change = pseudo_fs().change() + (decided ? 1 : 0);
  source.mounted_on_fileid = node.id;
  source.limits.read_only = true;
  source.lease_seconds = shared_.options.lease_seconds;
  source.minor = minor_;
  return source;
}

void Compound::describe(AttributeSource& to, const ExportObject& object,
                        const vfs::Attributes& attributes) const {
  to.attributes = attributes;
  to.fsid = {attributes.file_system_id, 0};
  to.mounted_on_fileid = attributes.file_id;
  to.limits = object.store().limits();
  to.lease_seconds = shared_.options.lease_seconds;
  to.minor = minor_;
  to.names = names();
}

AttributeSource Compound::source_of(const ExportObject& object,
                                    const vfs::Attributes& attributes) const {
  AttributeSource source;
  describe(source, object, attributes);
  return source;
}

// Made where it stays: it is large.
Eventual<Compound::FoundAttributes> Compound::own_attributes_of(const ExportObject& object,
                                                                const vfs::Attributes& attributes,
                                                                AttributeSet asked) const {
  Eventual<FoundAttributes> made(std::in_place, std::in_place);
  AttributeSource& source = *made.value();
  describe(source, object, attributes);
  if (asked.has(v4::FATTR4_MOUNTED_ON_FILEID) && object.handle == object.store().root())
    if (const PseudoFs::Node* const node = pseudo_fs().node_of(*object.export_))
      source.mounted_on_fileid = node->id;
  if (wants_handle(asked)) source.handle = admission_.handle_of(object, object.handle);
  return made;
}

Eventual<Compound::FoundAttributes> Compound::attributes_of(const Object& object,
                                                            AttributeSet asked) const {
  if (const auto* node = std::get_if<const PseudoFs::Node*>(&object)) {
    AttributeSource source = source_of(**node);
    if (wants_handle(asked)) source.handle = handle_of(object);
    return FoundAttributes(std::move(source));
  }
  const auto& of_export = std::get<ExportObject>(object);
  auto found = of_export.store().attributes(of_export.caller(), of_export.handle);
  const bool more = wants_usage(asked) || wants_acls(asked) || names() != nullptr;
  if (more || !found.ready()) return more_attributes_of(of_export, asked, std::move(found));
  if (!found.value()) return FoundAttributes(Failure{to_nfsstat4(found.value().error())});
  return own_attributes_of(of_export, *found.value(), asked);
}

Task<Compound::FoundAttributes> Compound::more_attributes_of(
    const ExportObject& object, AttributeSet asked,
    vfs::Operation<vfs::Attributes> attributes) const {
  auto answer = co_await ask_store(object, asked, std::move(attributes));
  if (!answer) co_return Failure{answer.error()};
  co_return co_await told_attributes_of(object, asked, *std::move(answer));
}

Task<Compound::FoundAttributes> Compound::told_attributes_of(const ExportObject& object,
                                                             AttributeSet asked,
                                                             StoreAnswer answer) const {
  FoundAttributes made = std::move(own_attributes_of(object, answer.attributes, asked).value());
  AttributeSource& source = *made;
  source.usage = answer.usage;
  source.acls = std::move(answer.acls);
  if (source.names != nullptr) co_await learn_names(owners_in(asked, source));
  co_return made;
}

Task<void> Compound::learn_names(std::vector<IdName> ids) const {
  const rpc::CallContext& call = admission_.call();
  return shared_.options.id_map->learn(std::move(ids), call.loop(), &call.origin());
}

Task<v4::nfsstat4> Compound::resolve_name(IdKind kind, std::string name, std::uint32_t& id) const {
  const auto& map = shared_.options.id_map;
  if (map == nullptr) co_return v4::NFS4ERR_BADOWNER;
  const rpc::CallContext& call = admission_.call();
  const auto found = co_await map->id_of(kind, std::move(name), call.loop(), &call.origin());
  if (!found) co_return found.error();
  id = *found;
  co_return v4::NFS4_OK;
}

Task<v4::nfsstat4> Compound::resolve_names(WantedAttributes& wanted) const {
  v4::nfsstat4 status = v4::NFS4_OK;
  if (!wanted.owner.empty())
    status = co_await resolve_name(IdKind::User, wanted.owner, wanted.values.uid.emplace());
  if (status == v4::NFS4_OK && !wanted.owner_group.empty())
    status = co_await resolve_name(IdKind::Group, wanted.owner_group, wanted.values.gid.emplace());
  if (!wanted.acl) co_return status;
  for (v4::nfsace4& ace : *wanted.acl) {
    if (status != v4::NFS4_OK) break;
    if (is_special(ace.who) || owner_id(ace.who)) continue;
    std::uint32_t id = 0;
    status = co_await resolve_name(kind_of(ace), ace.who, id);
    ace.who = owner_name(id);
  }
  co_return status;
}

v4::nfsstat4 check_name(std::string_view name) {
  if (name.empty()) return v4::NFS4ERR_INVAL;
  if (name == "." || name == "..") return v4::NFS4ERR_BADNAME;
  if (name.find('/') != name.npos || name.find('\0') != name.npos) return v4::NFS4ERR_BADCHAR;
  return v4::NFS4_OK;
}

v4::change_info4 to_change_info4(const vfs::Change& change) {
  // Each is a number that the object had, also where they are not those of this change alone. What
  // was not seen at all is told as the other one.
  std::optional<std::uint64_t> before = change.change_before, after;
  if (change.before) before = change.before->change;
  if (change.after) after = change.after->change;
  const bool atomic = change.before.has_value() && change.after.has_value();
  return {atomic, before.value_or(after.value_or(0)), after.value_or(before.value_or(0))};
}

}  // namespace stag::nfs::nfs4
