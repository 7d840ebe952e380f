// Names in version 4.
#include <exception>

#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/described.h"
#include "nfs/client/v4/nfs4.h"

namespace stag::nfs::client::nfs4 {
namespace {

// What is set together with an exclusive creation (RFC 8881 5.8.1.14): what a server that sets
// anything sets.
SetAttributes mode_of(const SetAttributes& attributes) {
  SetAttributes set;
  set.mode = attributes.mode;
  return set;
}

// What the server would not say of an object that it has made is asked for behind it.
Outcome<Made> made_of(OperationContext context, const Request& request, const Described& described,
                      Outcome<Reply>& reply) {
  if (!reply) return Failure{reply.error()};
  if (request.is_done()) return Made{described.handle(*reply), std::nullopt};
  const std::optional<Found> found = described.found(*reply);
  if (!found) return Failure{no_object(context)};
  return Made{found->handle, found->attributes};
}

}  // namespace

Nfs4::Nfs4(std::shared_ptr<SessionClient> client, const ProtocolOptions& options)
    : client_(std::move(client)),
      options_(options),
      opener_(client_->opener_of(options.credentials)) {
  options_.delegations = options.delegations && client_->is_own(options.credentials);
}

Task<Outcome<std::shared_ptr<Nfs4>>> Nfs4::connect(rpc::Channel& channel, ProtocolOptions options) {
  return connect(channel, std::move(options), Callbacks());
}

Task<Outcome<std::shared_ptr<Nfs4>>> Nfs4::connect(rpc::Channel& channel, ProtocolOptions options,
                                                   Callbacks callbacks) {
  constexpr std::uint32_t kHighest = 2;
  constexpr std::uint32_t kLowest = 0;
  const OperationContext context{"make a session", {}};
  for (std::uint32_t minor = options.minor.value_or(kHighest);; --minor) {
    auto client = std::make_shared<SessionClient>(channel, options, minor, callbacks);
    // Made before it is needed, when there may be no memory for it.
    Task<void> closing = client->close();
    Outcome<Ok> made = Ok{};
    std::exception_ptr failure;
    try {
      made = co_await client->establish(context, options);
      if (made) co_return std::make_shared<Nfs4>(client, options);
    } catch (...) {
      failure = std::current_exception();
    }
    // A session may be there already, and what binds it to a connection for callbacks.
    co_await std::move(closing);
    if (failure) std::rethrow_exception(failure);
    if (!client->minor_refused() || options.minor || minor == kLowest) {
      if (client->minor_refused())
        co_return Failure{
            Error::of_status({"speak this version of NFS", {}}, Status::NotSupported)};
      co_return Failure{made.error()};
    }
  }
}

Task<bool> Nfs4::joins(rpc::Channel& first, rpc::Channel& other, bool called_back) {
  return client_->join(first, {&other, called_back}, options_);
}

Task<Outcome<Found>> Nfs4::root(OperationContext context) {
  Request request;
  request.add(v4::OP_PUTROOTFH);
  Described described(request);
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  const std::optional<Found> found = described.found(*reply);
  if (!found) co_return Failure{no_object(context)};
  co_return *found;
}

Task<Outcome<Ok>> Nfs4::ping(OperationContext context) {
  rpc::CallOptions options;
  options.timeout = options_.timeout;
  options.cancel = options_.cancel;
  rpc::Client client(channel(), {}, options_.credentials);
  const rpc::CallResult<Ok> answer = co_await client.ping(v4::NFS4_PROGRAM, v4::NFS_V4, options);
  if (!answer) co_return Failure{Error::of_call(context, answer.error())};
  co_return Ok{};
}

Task<Outcome<Found>> Nfs4::lookup(OperationContext context, Handle directory,
                                  std::string_view name) {
  Request request;
  request.put_handle(directory);
  // RFC 8881 18.13.4: ".." is no name.
  if (name == "..")
    request.add(v4::OP_LOOKUPP);
  else
    request.add(v4::OP_LOOKUP, &Op::oplookup, {std::string(name)});
  Described described(request);
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  const std::optional<Found> found = described.found(*reply);
  if (!found) co_return Failure{no_object(context)};
  if (name != "..") note_place(found->handle, found->attributes, directory, name);
  co_return *found;
}

void Nfs4::note_place(const std::optional<Handle>& file,
                      const std::optional<Attributes>& attributes, const Handle& directory,
                      std::string_view name) {
  if (minor() > 0 || !file || !attributes || attributes->type != FileType::Regular) return;
  client_->places().put(*file, directory, name);
}

v4::createhow4 Nfs4::how_to_create(const SetAttributes& attributes, CreateMode mode) {
  v4::createhow4 how;
  if (!is_exclusive(mode)) {
    how.mode = mode == CreateMode::Guarded ? v4::GUARDED4 : v4::UNCHECKED4;
    how.createattrs() = to_fattr4(attributes);
    return how;
  }
  how.mode = minor() > 0 ? v4::EXCLUSIVE4_1 : v4::EXCLUSIVE4;
  v4::verifier4& verifier = minor() > 0 ? how.ch_createboth().cva_verf : how.createverf();
  verifier = client_->fresh_verifier();
  if (minor() > 0) how.ch_createboth().cva_attrs = to_fattr4(mode_of(attributes));
  return how;
}

v4::OPEN4args Nfs4::creation(std::string_view name, const SetAttributes& attributes,
                             CreateMode mode) {
  v4::OPEN4args args;
  args.share_access = v4::OPEN4_SHARE_ACCESS_WRITE;
  if (minor() > 0) args.share_access |= v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG;
  args.openhow.opentype = v4::OPEN4_CREATE;
  args.openhow.how() = how_to_create(attributes, mode);
  args.claim.claim = v4::CLAIM_NULL;
  args.claim.file() = std::string(name);
  return args;
}

// Opens and closes in one COMPOUND; version 4.0, which has no current stateid, in two.
Task<Outcome<Made>> Nfs4::create(OperationContext context, Handle directory, std::string_view name,
                                 SetAttributes attributes, CreateMode mode) {
  if (minor() == 0) {
    Outcome<Made> made =
        co_await create_open(context, directory, name, attributes, mode, access::kModify);
    if (!made) co_return made;
    const Outcome<Ok> closed = co_await close(context, {*made->handle, made->open});
    if (!closed) co_return Failure{closed.error()};
    made->open = 0;
    co_return made;
  }
  Request request;
  request.put_handle(directory);
  const std::size_t open = request.add_open(creation(name, attributes, mode));
  // RFC 8881 16.2.3.1.2: the current stateid is that of the OPEN.
  v4::stateid4 current;
  current.seqid = 1;
  request.done_with(request.add(v4::OP_CLOSE, &Op::opclose, {0, current}));
  Described described(request);
  Outcome<Reply> reply = co_await run(context, request.once_only());
  Outcome<Made> made = made_of(context, request, described, reply);
  if (!made) co_return made;
  auto* opened = reply->get(open, &OpResult::opopen);
  if (opened == nullptr) co_return Failure{no_object(context)};
  note_creation(*made, opened->resok4(), attributes);
  if (made->handle) client_->decline_delegation(*made->handle, opened->resok4().delegation);
  co_return made;
}

Task<Outcome<Made>> Nfs4::make(OperationContext context, Handle directory, std::string_view name,
                               v4::createtype4 what, SetAttributes attributes) {
  Request request;
  request.put_handle(directory);
  const std::size_t at = request.add(v4::OP_CREATE, &Op::opcreate,
                                     {std::move(what), std::string(name), to_fattr4(attributes)});
  request.done_with(at);
  Described described(request);
  Outcome<Reply> reply = co_await run(context, request.once_only());
  Outcome<Made> made = made_of(context, request, described, reply);
  if (!made) co_return made;
  auto* created = reply->get(at, &OpResult::opcreate);
  if (created == nullptr) co_return Failure{no_object(context)};
  made->directory = change_of(created->resok4().cinfo);
  co_return made;
}

Task<Outcome<Made>> Nfs4::mkdir(OperationContext context, Handle directory, std::string_view name,
                                SetAttributes attributes) {
  v4::createtype4 what;
  what.type = v4::NF4DIR;
  return make(context, directory, name, std::move(what), attributes);
}

Task<Outcome<Made>> Nfs4::symlink(OperationContext context, Handle directory, std::string_view name,
                                  std::string target, SetAttributes attributes) {
  v4::createtype4 what;
  what.type = v4::NF4LNK;
  what.linkdata() = Rope::copy_of(bytes_of(target));
  return make(context, directory, name, std::move(what), attributes);
}

Task<Outcome<Made>> Nfs4::mknod(OperationContext context, Handle directory, std::string_view name,
                                Special special, SetAttributes attributes) {
  v4::createtype4 what;
  what.type = static_cast<v4::nfs_ftype4>(special.type);
  if (special.type == FileType::BlockDevice || special.type == FileType::CharacterDevice)
    what.devdata() = {special.device.major, special.device.minor};
  return make(context, directory, name, std::move(what), attributes);
}

// A delegation that is held, with its open, keeps a file that has no name any more.
void Nfs4::give_back_removed(Reply& reply, std::size_t handle) {
  auto* const got = reply.get(handle, &OpResult::opgetfh);
  if (got == nullptr) return;
  const std::optional<Handle> removed = Handle::from(got->resok4().object.bytes());
  if (removed) client_->give_back_of(*removed);
}

// REMOVE removes whatever has the name (RFC 8881 18.25): its type is checked before.
Task<Outcome<Ok>> Nfs4::remove_checked(OperationContext context, Handle directory,
                                       std::string_view name, v4::nfs_opnum4 check,
                                       Status otherwise) {
  Request request;
  request.put_handle(directory);
  request.add(v4::OP_SAVEFH);
  request.add(v4::OP_LOOKUP, &Op::oplookup, {std::string(name)});
  const std::size_t handle = request.add(v4::OP_GETFH);
  const v4::fattr4 directories = type_is(FileType::Directory);
  if (check == v4::OP_VERIFY)
    request.add(v4::OP_VERIFY, &Op::opverify, {directories});
  else
    request.add(v4::OP_NVERIFY, &Op::opnverify, {directories});
  request.add(v4::OP_RESTOREFH);
  request.add(v4::OP_REMOVE, &Op::opremove, {std::string(name)});
  Outcome<Reply> reply = co_await run(context, request.once_only());
  if (reply) {
    client_->places().remove(directory, name);
    give_back_removed(*reply, handle);
    co_return Ok{};
  }
  if (reply.error().is(Status::NotSync)) co_return Failure{Error::of_status(context, otherwise)};
  co_return Failure{reply.error()};
}

Task<Outcome<Ok>> Nfs4::remove(OperationContext context, Handle directory, std::string_view name) {
  return remove_checked(context, directory, name, v4::OP_NVERIFY, Status::IsDirectory);
}

Task<Outcome<Ok>> Nfs4::rmdir(OperationContext context, Handle directory, std::string_view name) {
  return remove_checked(context, directory, name, v4::OP_VERIFY, Status::NotDirectory);
}

Task<Outcome<Ok>> Nfs4::rename(OperationContext context, Handle from_directory,
                               std::string_view from, Handle to_directory, std::string_view to) {
  std::optional<Handle> replaced;
  if (client_->delegations().held() > 0) {
    const Outcome<Found> found = co_await lookup(context, to_directory, to);
    if (found) replaced = found->handle;
  }
  Request request;
  request.put_handle(from_directory);
  request.add(v4::OP_SAVEFH);
  request.put_handle(to_directory);
  request.add(v4::OP_RENAME, &Op::oprename, {std::string(from), std::string(to)});
  const Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  client_->places().rename(from_directory, from, to_directory, to);
  if (replaced) client_->give_back_of(*replaced);
  co_return Ok{};
}

Task<Outcome<Ok>> Nfs4::link(OperationContext context, Handle file, Handle directory,
                             std::string_view name) {
  Request request;
  request.put_handle(file);
  request.add(v4::OP_SAVEFH);
  request.put_handle(directory);
  request.add(v4::OP_LINK, &Op::oplink, {std::string(name)});
  const Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  co_return Ok{};
}

}  // namespace stag::nfs::client::nfs4
