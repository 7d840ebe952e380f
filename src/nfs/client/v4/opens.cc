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

// The file's `change`; 0 where it was not asked for, or cannot be read.
std::uint64_t change_in(Reply& reply, std::optional<std::size_t> place) {
  auto* got = place ? reply.get(*place, &OpResult::opgetattr) : nullptr;
  const auto values = got == nullptr ? std::nullopt : values_of(got->resok4().obj_attributes);
  return values ? values->change : 0;
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

Task<Outcome<Opened>> Nfs4::open(OperationContext context, Handle file, std::uint32_t asked) {
  const std::uint32_t share = share_access(asked);
  if (minor() == 0 || share == 0) co_return co_await Protocol::open(context, file, asked);
  if (options_.delegations) {
    const Outcome<std::optional<Opened>> here = co_await open_delegated(context, file, share);
    if (!here) co_return Failure{here.error()};
    if (*here) co_return **here;
  }
  const bool wants = options_.delegations && client_->wants_delegations();
  const std::uint64_t as_of = client_->delegations().changes();
  const Opens::Id id = client_->fresh_number();
  v4::OPEN4args args;
  args.share_access = share | wanted_delegation(share, wants);
  args.claim.claim = v4::CLAIM_FH;
  Request request;
  request.put_handle(file);
  const std::size_t open = request.add_open(std::move(args), id);
  const Described described(request);
  std::optional<std::size_t> change;
  if (wants && (share & v4::OPEN4_SHARE_ACCESS_WRITE) != 0)
    change = request.add(v4::OP_GETATTR, &Op::opgetattr, {bitmap_of({v4::FATTR4_CHANGE})});
  Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  auto* opened = reply->get(open, &OpResult::opopen);
  const std::optional<Found> found = described.found(*reply);
  if (opened == nullptr || !found) co_return Failure{no_object(context)};
  client_->hold(id, file, share, opened->resok4().stateid);
  client_->take_delegation({file, id}, *found->attributes, as_of, change_in(*reply, change),
                           opened->resok4().delegation);
  co_return Opened{{file, id}, *found->attributes};
}

Task<Outcome<Made>> Nfs4::create_open(OperationContext context, Handle directory,
                                      std::string_view name, SetAttributes attributes,
                                      CreateMode mode, std::uint32_t asked) {
  const std::uint32_t share = share_access(asked);
  if (minor() == 0 || share == 0)
    co_return co_await create(context, directory, name, attributes, mode);
  const Opens::Id id = client_->fresh_number();
  v4::OPEN4args args = creation(name, attributes, mode);
  args.share_access = share | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  Request request;
  request.put_handle(directory);
  const std::size_t open = request.add_open(std::move(args), id);
  const Described described(request);
  Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  auto* opened = reply->get(open, &OpResult::opopen);
  const std::optional<Found> found = described.found(*reply);
  if (opened == nullptr || !found) co_return Failure{no_object(context)};
  client_->hold(id, found->handle, share, opened->resok4().stateid);
  co_return Made{found->handle, found->attributes, id};
}

Task<Outcome<Ok>> Nfs4::close(OperationContext context, File file) {
  if (file.open == 0 || client_->delegations().release(file.open)) co_return Ok{};
  co_return co_await client_->close_open(context, file, options_);
}

Task<Outcome<Ok>> Nfs4::lock(OperationContext context, File file, LockOwner owner,
                             FileLock wanted) {
  if (file.open == 0) co_return co_await Protocol::lock(context, file, owner, wanted);
  const auto range = state::byte_range(wanted.offset, wire_length(wanted));
  if (!range) co_return Failure{Error::of_status(context, Status::Invalid)};
  const std::string name = name_of(owner);
  v4::LOCK4args args;
  args.locktype = lock_type(wanted);
  args.offset = wanted.offset;
  args.length = wire_length(wanted);
  Request request;
  request.put_handle(file.handle);
  const std::size_t at = request.add(v4::OP_LOCK, &Op::oplock, std::move(args));
  request.set_by({at, file.open, name});
  Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  auto* locked = reply->get(at, &OpResult::oplock);
  if (locked == nullptr) co_return Failure{contradiction(context)};
  client_->opens().on_lock(file.open, name, {*range, lock_mode(wanted)},
                           locked->resok4().lock_stateid);
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs4::unlock(OperationContext context, File file, LockOwner owner,
                               FileLock range) {
  if (file.open == 0) co_return co_await Protocol::unlock(context, file, owner, range);
  const auto bytes = state::byte_range(range.offset, wire_length(range));
  if (!bytes) co_return Failure{Error::of_status(context, Status::Invalid)};
  const std::string name = name_of(owner);
  if (!client_->opens().has_locks(file.open, name)) co_return Ok{};
  Request request;
  request.put_handle(file.handle);
  const std::size_t at =
      request.add(v4::OP_LOCKU, &Op::oplocku,
                  {v4::READ_LT, 0, v4::stateid4{}, range.offset, wire_length(range)});
  request.set_by({at, file.open, name});
  const Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply && !reply.error().is(Status::StateLost)) co_return Failure{reply.error()};
  client_->opens().on_unlock(file.open, name, *bytes);
  co_return Ok{};
}

Task<Outcome<std::optional<FileLock>>> Nfs4::test_lock(OperationContext context, File file,
                                                       LockOwner owner, FileLock wanted) {
  if (file.open == 0) co_return co_await Protocol::test_lock(context, file, owner, wanted);
  Request request;
  request.put_handle(file.handle);
  const std::size_t at =
      request.add(v4::OP_LOCKT, &Op::oplockt,
                  {lock_type(wanted), wanted.offset, wire_length(wanted), v4::lock_owner4{}});
  request.set_by({at, file.open, name_of(owner)});
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
