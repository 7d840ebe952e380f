// Opens that are held, and locks by them (RFC 8881 sections 9, 18.2, 18.10, 18.16).
#include "nfs/client/v4/described.h"
#include "nfs/client/v4/nfs4.h"

namespace stag::nfs::client::nfs4 {
namespace {

using session::Opens;

std::uint32_t share_access(std::uint32_t asked) {
  std::uint32_t share = 0;
  if ((asked & access::kRead) != 0) share |= v4::OPEN4_SHARE_ACCESS_READ;
  if ((asked & (access::kModify | access::kExtend)) != 0) share |= v4::OPEN4_SHARE_ACCESS_WRITE;
  return share;
}

std::uint32_t wanted_delegation(std::uint32_t share, bool wants) {
  if (!wants) return v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  return (share & v4::OPEN4_SHARE_ACCESS_WRITE) != 0 ? v4::OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG
                                                     : v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG;
}

std::string name_of(LockOwner owner) {
  std::string name(16, '\0');
  auto* const bytes = reinterpret_cast<std::byte*>(name.data());
  store_be(bytes, owner.space);
  store_be(bytes + 8, owner.number);
  return name;
}

std::uint64_t wire_length(const FileLock& lock) {
  return lock.length == 0 ? state::Range::kEnd : lock.length;
}

v4::nfs_lock_type4 lock_type(const FileLock& lock) {
  return lock.exclusive ? v4::WRITE_LT : v4::READ_LT;
}

state::RangeMode lock_mode(const FileLock& lock) {
  return lock.exclusive ? state::RangeMode::Exclusive : state::RangeMode::Shared;
}

// In answer to an OPEN by name: something else may have it, of which servers say that it is no file
// (RFC 7530 16.16.6).
bool says_no_such_file(const Error& error) {
  return error.is(Status::NoEntry) || error.is(Status::IsDirectory) || error.is(Status::Invalid);
}

Error contradiction(OperationContext context) {
  return Error::of_protocol(context,
                            "sent results of a lock or an open that contradict each other");
}

}  // namespace

// Of a file that is delegated; nullopt: the server has to be asked.
Task<Outcome<std::optional<Opened>>> Nfs4::open_delegated(OperationContext context, Handle file,
                                                          std::uint32_t share) {
  const Delegations::Delegation* held = client_->delegations().use(file, share);
  if (held == nullptr) co_return std::optional<Opened>();
  const File opened = held->file;
  const Outcome<Attributes> attributes = co_await getattr(context, file);
  if (attributes) co_return Opened{opened, *attributes};
  static_cast<void>(co_await close(context, opened));
  co_return Failure{attributes.error()};
}

// OPEN in the place `open`, by `id`, which holds what it gives.
Task<Outcome<Nfs4::Granted>> Nfs4::hold_open(OperationContext context, Request request,
                                             std::size_t open, Opens::Id id, std::uint32_t share,
                                             bool with_change) {
  Described described(request);
  Values after;  // those of the delegated file, where they were asked for
  if (with_change) request.add_getattr(change_attribute(), after);
  request.hold_open(opener_);
  const std::uint64_t as_of = client_->delegations().changes();
  Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply && reply.error().kind == Error::Kind::Nfs) {
    // OPEN may have succeeded, and what stands behind it failed.
    Reply partial(request);
    co_await close_nameless(context, partial, open, id, share);
  } else if (!reply) {
    client_->on_not_opened(id);
  }
  if (!reply) co_return Failure{reply.error()};
  auto* opened = reply->get(open, &OpResult::opopen);
  std::optional<Found> found = described.found(*reply);
  const std::optional<Handle> made = request.is_done() ? described.handle(*reply) : std::nullopt;
  Error trouble = no_object(context);
  if (made) {
    const Outcome<Attributes> asked = co_await getattr(context, *made);
    if (asked)
      found = Found{*made, *asked};
    else
      trouble = asked.error();
  }
  if (opened == nullptr || !found) {
    co_await close_nameless(context, *reply, open, id, share);
    co_return Failure{std::move(trouble)};
  }
  client_->hold(id, found->handle, share, opened->resok4().stateid, opener_);
  const std::uint64_t change = after.whole() ? after.attributes.change : 0;
  co_return Granted{
      {{found->handle, id}, *found->attributes}, as_of, change, std::move(opened->resok4())};
}

// The server has opened something and does not say what, or only which handle it has: what can be
// given back is.
Task<void> Nfs4::close_nameless(OperationContext context, Reply& reply, std::size_t open,
                                Opens::Id id, std::uint32_t share) {
  auto* opened = reply.get(open, &OpResult::opopen);
  auto* got = reply.get(open + 1, &OpResult::opgetfh);
  const auto handle = got == nullptr ? std::nullopt : Handle::from(got->resok4().object.bytes());
  if (opened == nullptr || !handle) {
    client_->on_not_opened(id);
    co_return;
  }
  const File file{*handle, id};
  client_->hold(id, *handle, share, opened->resok4().stateid, opener_);
  client_->take_delegation(file, {}, 0, 0, opened->resok4().delegation);
  client_->give_back_of(*handle);
  static_cast<void>(co_await close(context, file));
}

void Nfs4::take_delegation(const Granted& granted) {
  client_->take_delegation(granted.opened.file, granted.opened.attributes, granted.as_of,
                           granted.change, granted.results.delegation);
}

// Version 4.0 opens by name. It may be another file's by now.
Task<Outcome<Opened>> Nfs4::open_named(OperationContext context, Handle file, Places::Place place,
                                       std::uint32_t share) {
  const Opens::Id id = client_->fresh_number();
  v4::OPEN4args args;
  args.share_access = share;
  args.claim.claim = v4::CLAIM_NULL;
  args.claim.file() = place.name;
  Request request;
  request.put_handle(place.directory);
  const std::size_t at = request.add_open(std::move(args), id);
  const Outcome<Granted> granted =
      co_await hold_open(context, std::move(request), at, id, share, false);
  const bool gone = !granted && says_no_such_file(granted.error());
  if (!granted && !gone) co_return Failure{granted.error()};
  if (!gone) take_delegation(*granted);
  if (!gone && granted->opened.file.handle == file) co_return granted->opened;
  client_->places().remove(place.directory, place.name);
  if (!gone) static_cast<void>(co_await close(context, granted->opened.file));
  co_return Failure{Error::of_status(context, Status::Stale)};
}

Task<Outcome<Opened>> Nfs4::open(OperationContext context, Handle file, std::uint32_t asked) {
  const std::uint32_t share = share_access(asked);
  if (share == 0) co_return co_await Protocol::open(context, file, asked);
  if (options_.delegations && !client_->lapsed()) {
    const Outcome<std::optional<Opened>> here = co_await open_delegated(context, file, share);
    if (!here) co_return Failure{here.error()};
    if (*here) co_return **here;
  }
  if (minor() == 0) {
    const std::optional<Places::Place> place = client_->places().find(file);
    if (place) co_return co_await open_named(context, file, *place, share);
    const Outcome<Opened> plain = co_await Protocol::open(context, file, asked);
    if (plain && plain->attributes.type == FileType::Directory)
      co_return Failure{Error::of_status(context, Status::IsDirectory)};
    co_return plain;
  }
  const bool wants = options_.delegations && client_->wants_delegations();
  const Opens::Id id = client_->fresh_number();
  v4::OPEN4args args;
  args.share_access = share | wanted_delegation(share, wants);
  args.claim.claim = v4::CLAIM_FH;
  Request request;
  request.put_handle(file);
  const bool with_change = wants && (share & v4::OPEN4_SHARE_ACCESS_WRITE) != 0;
  const std::size_t at = request.add_open(std::move(args), id);
  const Outcome<Granted> granted =
      co_await hold_open(context, std::move(request), at, id, share, with_change);
  if (!granted) co_return Failure{granted.error()};
  if (wants)
    take_delegation(*granted);
  else
    client_->decline_delegation(file, granted->results.delegation);
  co_return granted->opened;
}

Task<Outcome<Made>> Nfs4::create_open(OperationContext context, Handle directory,
                                      std::string_view name, SetAttributes attributes,
                                      CreateMode mode, std::uint32_t asked) {
  const std::uint32_t share = share_access(asked);
  if (share == 0) co_return co_await create(context, directory, name, attributes, mode);
  const Opens::Id id = client_->fresh_number();
  v4::OPEN4args args = creation(name, attributes, mode);
  args.share_access = share | (minor() > 0 ? v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG : 0);
  Request request;
  request.put_handle(directory);
  const std::size_t at = request.add_open(std::move(args), id);
  request.done_with(at + 1);  // with its GETFH
  const Outcome<Granted> granted =
      co_await hold_open(context, std::move(request), at, id, share, false);
  if (!granted) co_return Failure{granted.error()};
  const File& file = granted->opened.file;
  note_place(file.handle, granted->opened.attributes, directory, name);
  // Version 4.0 cannot ask for none, and a server of the others need not know what is wanted.
  if (minor() == 0)
    take_delegation(*granted);
  else
    client_->decline_delegation(file.handle, granted->results.delegation);
  Made made{file.handle, granted->opened.attributes, id};
  note_creation(made, granted->results, attributes);
  co_return made;
}

// Locks that were not taken back end with an open that nobody uses: then no delegation keeps it.
Task<Outcome<Ok>> Nfs4::close(OperationContext context, File file) {
  if (file.open == 0) co_return Ok{};
  Delegations& delegations = client_->delegations();
  if (!delegations.release(file.open))
    co_return co_await client_->close_open(context, file, options_);
  const bool locked = client_->opens().any_lock_owner(file.open) != nullptr;
  try {
    if (locked && !delegations.is_used(file.open)) client_->give_back_of(file.handle);
  } catch (const std::bad_alloc&) {  // it is kept as others are; the open is released by now
  }
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs4::lock(OperationContext context, File file, LockOwner owner,
                             FileLock wanted) {
  if (file.open == 0) co_return co_await Protocol::lock(context, file, owner, wanted);
  const auto range = state::byte_range(wanted.offset, wire_length(wanted));
  if (!range) co_return Failure{Error::of_status(context, Status::Invalid)};
  const std::string name = name_of(owner);
  const Outcome<Ok> settled = co_await client_->locks_settled(context, name, options_);
  if (!settled) co_return Failure{settled.error()};
  const LockTurns::Mark asking = client_->lock_turns().ask(name);
  v4::LOCK4args args;
  args.locktype = lock_type(wanted);
  args.offset = wanted.offset;
  args.length = wire_length(wanted);
  Request request;
  request.put_handle(file.handle);
  const std::size_t at = request.add(v4::OP_LOCK, &Op::oplock, std::move(args));
  request.set_by({at, file.open, name, {*range, lock_mode(wanted)}});
  Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  if (reply->get(at, &OpResult::oplock) == nullptr) co_return Failure{contradiction(context)};
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs4::unlock(OperationContext context, File file, LockOwner owner,
                               FileLock range) {
  if (file.open == 0) co_return co_await Protocol::unlock(context, file, owner, range);
  const auto bytes = state::byte_range(range.offset, wire_length(range));
  if (!bytes) co_return Failure{Error::of_status(context, Status::Invalid)};
  const std::string name = name_of(owner);
  if (!client_->opens().has_locks(file.open, name)) co_return Ok{};
  const Outcome<Ok> settled = co_await client_->locks_settled(context, name, options_);
  if (!settled) co_return Failure{settled.error()};
  const LockTurns::Mark asking = client_->lock_turns().ask(name);
  Request request;
  request.put_handle(file.handle);
  const std::size_t at =
      request.add(v4::OP_LOCKU, &Op::oplocku,
                  {v4::READ_LT, 0, v4::stateid4{}, range.offset, wire_length(range)});
  request.set_by({at, file.open, name, {*bytes, state::RangeMode::None}});
  const Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply && !reply.error().is(Status::StateLost)) co_return Failure{reply.error()};
  client_->on_unlock(file.open, name, *bytes);
  co_return Ok{};
}

std::vector<LockPiece> Nfs4::locks_within(const std::vector<File>& opens, LockOwner owner,
                                          FileLock range) const {
  std::vector<LockPiece> pieces;
  const auto bytes = state::byte_range(range.offset, wire_length(range));
  if (!bytes) return pieces;
  const std::string name = name_of(owner);
  Opens::Modes modes;
  for (const File& file : opens)
    for (const Opens::Modes::Piece& piece : client_->opens().locks_within(file.open, name, *bytes))
      modes.raise(piece.range, piece.mode);
  for (const Opens::Modes::Piece& piece : modes.within(*bytes)) {
    const auto [first, last] = piece.range;
    const std::uint64_t length = last == state::Range::kEnd ? 0 : last - first + 1;
    pieces.push_back({.lock = {first, length, piece.mode == state::RangeMode::Exclusive},
                      .held = piece.mode != state::RangeMode::None});
  }
  return pieces;
}

Task<Outcome<std::optional<FileLock>>> Nfs4::test_lock(OperationContext context, File file,
                                                       LockOwner owner, FileLock wanted) {
  if (file.open == 0) co_return co_await Protocol::test_lock(context, file, owner, wanted);
  Request request;
  request.put_handle(file.handle);
  const std::size_t at =
      request.add(v4::OP_LOCKT, &Op::oplockt,
                  {lock_type(wanted), wanted.offset, wire_length(wanted), v4::lock_owner4{}});
  request.set_by({at, file.open, name_of(owner), {}});
  request.expect(v4::NFS4ERR_DENIED);
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  auto* tested = reply->whatever(at, &OpResult::oplockt);
  if (tested == nullptr) co_return Failure{contradiction(context)};
  if (tested->status == v4::NFS4_OK) co_return std::optional<FileLock>();
  const v4::LOCK4denied& other = tested->denied();
  const std::uint64_t length = other.length == state::Range::kEnd ? 0 : other.length;
  co_return FileLock{other.offset, length, other.locktype == v4::WRITE_LT};
}

}  // namespace stag::nfs::client::nfs4
