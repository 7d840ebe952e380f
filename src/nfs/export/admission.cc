#include "nfs/export/admission.h"

#include <algorithm>

#include "base/first_answer.h"
#include "base/reason.h"
#include "rpc/connection.h"

namespace stag::nfs {

namespace {

bool takes(const ExportOptions& options, oncrpc::AuthFlavor flavor) {
  return std::ranges::count(options.flavors, flavor) != 0;
}

bool goes_beside_nfs(const ExportOptions& options, oncrpc::AuthFlavor flavor) {
  if (flavor == oncrpc::AuthFlavor::AUTH_NONE) return false;
  return is_kerberos(flavor) || std::ranges::any_of(options.flavors, is_kerberos) ||
         takes(options, oncrpc::AuthFlavor::AUTH_NONE);
}

// Beside Kerberos there are users to tell apart.
bool knows_nobody(const ExportOptions& options) {
  return takes(options, oncrpc::AuthFlavor::AUTH_NONE) &&
         std::ranges::none_of(options.flavors, is_kerberos);
}

Result<Admitted, Refusal> admitted_to(const Export& found, const rpc::Origin& origin,
                                      const rpc::Caller& caller, Admission::Security security) {
  using Security = Admission::Security;
  const Export::Terms terms = found.terms_for(origin);
  if (terms.undecided) return Failure{Refusal::Undecided};
  const ExportOptions* const options = terms.options;
  if (options == nullptr) {
    trace(Reason::NfsClientNotAdmitted, to_string(origin.peer), found.path());
    return Failure{Refusal::NotAdmitted};
  }
  const bool wrong = !takes(*options, caller.flavor);
  if (wrong && security != Security::Deferred &&
      !(security == Security::BesideNfs && goes_beside_nfs(*options, caller.flavor))) {
    trace(Reason::NfsFlavorNotAdmitted, to_string(origin.peer), found.path());
    return Failure{Refusal::WrongSecurity};
  }
  if (wrong && knows_nobody(*options))
    return Admitted{&options->of(oncrpc::AuthFlavor::AUTH_NONE), wrong, true};
  const ExportOptions& here = options->of(caller.flavor);
  if (caller.groups_undecided && !here.all_squash) return Failure{Refusal::Undecided};
  return Admitted{&here, wrong, false};
}

}  // namespace

std::optional<Exports::Match> Admission::match(std::string_view path) const {
  const auto present = server_.exports.current();
  std::optional<Exports::Match> match = present->match(path);
  if (match) match->found = exports_.meet(match->found->id);
  // Null: it was removed in between.
  if (match && match->found == nullptr) match.reset();
  return match;
}

Result<ExportObject, Refusal> Admission::resolve(Bytes file_handle, Security security) const {
  const auto parts = server_.handles.parts_of(file_handle);
  if (!parts) return Failure{Refusal::BadHandle};
  const Export* found = exports_.meet(parts->export_id);
  if (found == nullptr) return Failure{Refusal::ExportGone};
  const vfs::Handle object = *vfs::Handle::from(parts->object);
  if (security == Security::Mounting)
    security = object == found->file_system().root() ? Security::BesideNfs : Security::Checked;
  return admit(*found, object, security);
}

Eventual<Result<ExportObject, Refusal>> Admission::resolve_settled(Bytes file_handle,
                                                                   Security security) const {
  auto object = resolve(file_handle, security);
  if (object || object.error() != Refusal::Undecided) return object;
  return settle(file_handle, security, Duration::max());
}

Eventual<Result<ExportObject, Refusal>> Admission::resolve_soon(Bytes file_handle,
                                                                Security security) const {
  auto object = resolve(file_handle, security);
  if (object || object.error() != Refusal::Undecided) return object;
  return settle_soon(file_handle, security);
}

Task<Result<ExportObject, Refusal>> Admission::settle_soon(Bytes file_handle,
                                                           Security security) const {
  constexpr Duration kSoon = std::chrono::seconds(1);
  const auto place = server_.unnamed->enter(call_.origin());
  if (!place) co_return Failure{Refusal::Undecided};
  co_return co_await settle(file_handle, security, kSoon);
}

Task<Result<ExportObject, Refusal>> Admission::settle(Bytes file_handle, Security security,
                                                      Duration at_most) const {
  const auto opened = server_.handles.open(file_handle);
  const Export* const found = opened ? exports_.meet(opened->export_id) : nullptr;
  if (found != nullptr) co_await found->settle(call_.origin(), at_most);
  co_return resolve(file_handle, security);
}

Result<ExportObject, Refusal> Admission::admit(const Export& found, const vfs::Handle& object,
                                               Security security) const {
  return nfs::admit(found, object, call_.origin(), call_.caller(), security, call_.worker_time());
}

Result<Admitted, Refusal> Admission::terms_of(const Export& found, Security security) const {
  return admitted_to(found, call_.origin(), call_.caller(), security);
}

Result<ExportObject, Refusal> admit(const Export& found, const vfs::Handle& object,
                                    const rpc::Origin& origin, const rpc::Caller& caller,
                                    Admission::Security security, WorkerTime* worker_time) {
  const auto admitted = admitted_to(found, origin, caller, security);
  if (!admitted) return Failure{admitted.error()};
  return ExportObject(found, object, *admitted, origin, caller, worker_time);
}

Eventual<Admission::Permitted> Admission::permit(const ExportObject& object,
                                                 const Intent& intent) const {
  state::Permit permit = server_.gate->access(object.key(), intent.touch);
  if (permit.granted()) return Permitted(std::move(permit.change));
  return permit_in_time(object, intent);
}

Task<Admission::Permitted> Admission::permit_in_time(const ExportObject& object,
                                                     Intent intent) const {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  constexpr int kLooks = 50;
  if (intent.does_nothing()) co_return state::FileChange();
  if (const auto refused = co_await refusal_of(object, intent)) co_return Failure{*refused};
  const state::FileKey file = object.key();
  for (int i = 0; i < kLooks; ++i) {
    if (auto permitted = permit_now(file, intent.touch)) co_return *std::move(permitted);
    // Most often that is done by now.
    if (i > 0) co_await sleep_for(*object.loop, kLook);
  }
  if (deferral_ != nullptr) co_return co_await permit_late(object, intent.touch);
  co_return Failure{vfs::Status::Delay};
}

// nullopt: a holder is in the way, which makes way.
std::optional<Admission::Permitted> Admission::permit_now(const state::FileKey& file,
                                                          state::Touch touch) const {
  state::Permit permit = server_.gate->access(file, touch);
  switch (permit.kind) {
    case state::Verdict::Kind::Granted:
      return Permitted(std::move(permit.change));
    case state::Verdict::Kind::Refused:
      return Permitted(Failure{vfs::Status::Access});
    case state::Verdict::Kind::Lapsed:
      server_.gate->end_lapsed(permit.who);
      break;
    case state::Verdict::Kind::Recall:
      server_.gate->recall(file, touch);
      break;
  }
  return std::nullopt;
}

// Looks less often: who has not made way within a second takes long.
Task<Admission::Permitted> Admission::permit_late(const ExportObject& object,
                                                  state::Touch touch) const {
  constexpr Duration kLook = std::chrono::milliseconds(200);
  const state::FileKey file = object.key();
  const auto place = server_.deferred->enter(call_.origin());
  const TimePoint until = call_.loop().now() + server_.gate->makes_way_within();
  while (place && call_.loop().now() < until) {
    const bool up = co_await stays_up_for(kLook);
    if (!up || server_.deferred->ended()) {
      deferral_->abandon();
      break;
    }
    if (auto permitted = permit_now(file, touch)) co_return *std::move(permitted);
  }
  co_return Failure{vfs::Status::Delay};
}

// False as soon as the connection of the Call is gone.
Task<bool> Admission::stays_up_for(Duration time) const {
  FirstAnswer<bool> stays(call_.loop());
  rpc::Connection::Watch watch;
  const bool up = watch.start(*call_.connection(), [tell = stays.from_anywhere()] { tell(false); });
  if (!up) co_return false;
  co_return co_await stays.within(time, true);
}

Task<std::optional<vfs::Status>> Admission::refused_create(const ExportObject& directory,
                                                           std::string_view name,
                                                           const vfs::CreateHow& how) const {
  if (how.mode != vfs::CreateMode::Unchecked || !how.attributes.size) co_return std::nullopt;
  co_return co_await refused_name(directory, name, kToSetSize);
}

Task<std::optional<vfs::Status>> Admission::refused_remove(const ExportObject& directory,
                                                           std::string_view name) const {
  const Intent intent{.touch = state::Touch::Unlink, .directory = &directory};
  co_return co_await refused_name(directory, name, intent);
}

Task<std::optional<vfs::Status>> Admission::refused_rename(const ExportObject& from,
                                                           std::string_view oldname,
                                                           const ExportObject& to,
                                                           std::string_view newname) const {
  const auto refused = co_await refused_remove(from, oldname);
  if (refused) co_return refused;
  co_return co_await refused_remove(to, newname);
}

Task<std::optional<vfs::Status>> Admission::refused_name(const ExportObject& directory,
                                                         std::string_view name,
                                                         const Intent& intent) const {
  ExportObject file = directory;
  const auto found = co_await directory.store().lookup(directory.caller(), directory.handle, name);
  if (!found) co_return std::nullopt;
  file.handle = found->node.handle;
  const auto permitted = co_await permit(file, intent);
  if (permitted) co_return std::nullopt;
  co_return permitted.error();
}

std::optional<vfs::Status> refused_together(const ExportObject& one, const ExportObject& other) {
  // Two exports of one store are still two: their options differ.
  if (one.export_ != other.export_) return vfs::Status::CrossDevice;
  if (one.read_only()) return vfs::Status::ReadOnly;
  return std::nullopt;
}

Task<std::optional<vfs::Attributes>> attributes_now(const ExportObject& object) {
  const auto found = co_await object.store().attributes(object.caller(), object.handle);
  if (!found) co_return std::nullopt;
  co_return *found;
}

}  // namespace stag::nfs
