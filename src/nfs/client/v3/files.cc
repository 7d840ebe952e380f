// Attributes, data, listings and facts in version 3.
#include <array>

#include "nfs/client/v3/nfs3.h"
#include "nfs/client/v3/values.h"
#include "nfs/ulb/nfs3.h"
#include "nfs/ulb/nfsacl.h"

namespace stag::nfs::client::nfs3 {
namespace {

// A READLINK reply without the text: status, attributes, length.
constexpr std::uint32_t kLinkFrame = 4 + 88 + 4;

v3::stable_how to_stable_how(Stability stability) {
  switch (stability) {
    case Stability::Unstable:
      return v3::UNSTABLE;
    case Stability::DataSync:
      return v3::DATA_SYNC;
    case Stability::FileSync:
      return v3::FILE_SYNC;
  }
  return v3::FILE_SYNC;
}

Stability to_stability(v3::stable_how how) {
  switch (how) {
    case v3::UNSTABLE:
      return Stability::Unstable;
    case v3::DATA_SYNC:
      return Stability::DataSync;
    case v3::FILE_SYNC:
      return Stability::FileSync;
  }
  return Stability::Unstable;
}

// Some servers answer NFSACL with the number that version 2 has for it.
Status to_acl_status(std::uint32_t status) {
  constexpr std::uint32_t kNotSupported2 = 45;  // NFSERR_OPNOTSUPP
  return status == kNotSupported2 ? Status::NotSupported : to_status(status);
}

ListedEntry to_listed(v3::entry3& entry) {
  return {{std::move(entry.name), entry.fileid, std::nullopt, std::nullopt}, entry.cookie};
}
ListedEntry to_listed(v3::entryplus3& entry) {
  return {{std::move(entry.name), entry.fileid, to_attributes(entry.name_attributes),
           to_handle(entry.name_handle)},
          entry.cookie};
}

template <class Resok>
ListedPart to_listed_part(Resok& resok) {
  ListedPart part;
  part.entries.reserve(resok.reply.entries.size());
  for (auto& entry : resok.reply.entries) part.entries.push_back(to_listed(entry));
  part.verifier = resok.cookieverf;
  part.eof = resok.reply.eof;
  return part;
}

}  // namespace

Nfs3::Nfs3(rpc::Channel& channel, const ProtocolOptions& options)
    : client_(channel, options, ulb::nfs3(), to_status),
      acl_client_(channel, options, ulb::nfsacl(), to_acl_status) {}

rpc::Channel& Nfs3::channel() const {
  return client_.channel();
}

std::shared_ptr<Protocol> Nfs3::with(const ProtocolOptions& options) const {
  return std::make_shared<Nfs3>(channel(), options);
}

Task<Outcome<Ok>> Nfs3::ping(OperationContext context) {
  return client_.ping(context, v3::NFS_V3);
}

Task<Outcome<Attributes>> Nfs3::getattr(OperationContext context, Handle object) {
  const v3::GETATTR3args args{to_nfs_fh3(object)};
  const auto resok = co_await client_.call<v3::NFSPROC3_GETATTR>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_attributes(resok->obj_attributes);
}

Task<Outcome<std::optional<Attributes>>> Nfs3::setattr(OperationContext context, File object,
                                                       SetAttributes attributes,
                                                       std::optional<Time> guard) {
  v3::SETATTR3args args;
  args.object = to_nfs_fh3(object.handle);
  args.new_attributes = to_sattr3(attributes);
  args.guard.check = guard.has_value();
  if (guard) args.guard.obj_ctime() = to_nfstime3(*guard);
  const auto resok = co_await client_.call<v3::NFSPROC3_SETATTR>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_attributes(resok->obj_wcc.after);
}

Task<Outcome<Found>> Nfs3::lookup(OperationContext context, Handle directory,
                                  std::string_view name) {
  v3::LOOKUP3args args;
  args.what.dir = to_nfs_fh3(directory);
  args.what.name = name;
  const auto resok = co_await client_.call<v3::NFSPROC3_LOOKUP>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return Found{to_handle(resok->object), to_attributes(resok->obj_attributes)};
}

Task<Outcome<std::uint32_t>> Nfs3::access(OperationContext context, Handle object,
                                          std::uint32_t asked) {
  v3::ACCESS3args args;
  args.object = to_nfs_fh3(object);
  args.access = asked;
  const auto resok = co_await client_.call<v3::NFSPROC3_ACCESS>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return resok->access& asked;
}

// RFC 8267 section 3: provides for a text of `size` bytes where the link's attributes have it.
Task<Outcome<std::string>> Nfs3::readlink(OperationContext context, Handle symlink,
                                          std::optional<std::uint64_t> size) {
  const v3::READLINK3args args{to_nfs_fh3(symlink)};
  // Some file systems give a size of 0 to links whose text they make up.
  std::optional<std::uint32_t> results_max;
  if (size.value_or(0) != 0 && *size <= ulb::kMaxLinkText)
    results_max = kLinkFrame + static_cast<std::uint32_t>(*size);
  auto resok = co_await client_.call<v3::NFSPROC3_READLINK>(args, context, {}, results_max);
  const bool too_long = !resok && resok.error().kind == Error::Kind::Call &&
                        resok.error().call.reason == Reason::RdmaPeerRefusedChunks;
  if (results_max && too_long) resok = co_await client_.call<v3::NFSPROC3_READLINK>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return std::move(resok->data);
}

Task<Outcome<ReadPart>> Nfs3::read(OperationContext context, File file, std::uint64_t offset,
                                   MutableBytes to) {
  v3::READ3args args;
  args.file = to_nfs_fh3(file.handle);
  args.offset = offset;
  args.count = static_cast<std::uint32_t>(to.size());
  const std::array<rpc::ResultBuffer, 1> result_buffers{
      rpc::ResultBuffer{v3::item::READ3resok_data, to}};
  const std::span<const rpc::ResultBuffer> used =
      std::span(result_buffers).first(to.empty() ? 0 : 1);
  const auto resok = co_await client_.call<v3::NFSPROC3_READ>(args, context, used);
  if (!resok) co_return Failure{resok.error()};
  if (resok->data.size() != resok->count)
    co_return Failure{Error::of_protocol(context, "sent another amount of data than it said")};
  if (resok->count > to.size())
    co_return Failure{Error::of_protocol(context, "sent more data than asked for")};
  rpc::copy_into(resok->data, to);
  co_return ReadPart{resok->count, resok->eof};
}

Task<Outcome<WritePart>> Nfs3::write(OperationContext context, File file, std::uint64_t offset,
                                     Bytes data, Stability stable) {
  v3::WRITE3args args;
  args.file = to_nfs_fh3(file.handle);
  args.offset = offset;
  args.count = static_cast<std::uint32_t>(data.size());
  args.stable = to_stable_how(stable);
  args.data = Rope::borrow(data);
  const auto resok = co_await client_.call<v3::NFSPROC3_WRITE>(args, context);
  if (!resok) co_return Failure{resok.error()};
  if (resok->count > data.size())
    co_return Failure{Error::of_protocol(context, "wrote more data than it was given")};
  if (resok->count == 0 && !data.empty())
    co_return Failure{Error::of_protocol(context, "wrote nothing and gave no reason")};
  co_return WritePart{resok->count, to_stability(resok->committed), resok->verf};
}

Task<Outcome<Verifier>> Nfs3::commit(OperationContext context, Handle file, std::uint64_t offset,
                                     std::uint32_t count) {
  v3::COMMIT3args args;
  args.file = to_nfs_fh3(file);
  args.offset = offset;
  args.count = count;
  const auto resok = co_await client_.call<v3::NFSPROC3_COMMIT>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return resok->verf;
}

Task<Outcome<ListedPart>> Nfs3::list(OperationContext context, Handle directory, ListPosition from,
                                     bool with_attributes, std::uint32_t size) {
  const v3::nfs_fh3 handle = to_nfs_fh3(directory);
  Outcome<ListedPart> part = ListedPart{};
  if (with_attributes)
    part = co_await list_attributes(context, handle, from, size);
  else
    part = co_await list_names(context, handle, from, size);
  co_return part;
}

Task<Outcome<ListedPart>> Nfs3::list_names(OperationContext context, const v3::nfs_fh3& directory,
                                           const ListPosition& from, std::uint32_t size) {
  v3::READDIR3args args;
  args.dir = directory;
  args.cookie = from.cookie;
  args.cookieverf = from.verifier;
  args.count = size;
  auto resok = co_await client_.call<v3::NFSPROC3_READDIR>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_listed_part(*resok);
}

Task<Outcome<ListedPart>> Nfs3::list_attributes(OperationContext context,
                                                const v3::nfs_fh3& directory,
                                                const ListPosition& from, std::uint32_t size) {
  v3::READDIRPLUS3args args;
  args.dir = directory;
  args.cookie = from.cookie;
  args.cookieverf = from.verifier;
  // dircount bounds the names only; maxcount bounds the whole reply.
  args.dircount = size;
  args.maxcount = size;
  auto resok = co_await client_.call<v3::NFSPROC3_READDIRPLUS>(args, context);
  if (!resok) co_return Failure{resok.error()};
  co_return to_listed_part(*resok);
}

Task<Outcome<FileSystemUsage>> Nfs3::usage(OperationContext context, Handle object) {
  const v3::FSSTAT3args args{to_nfs_fh3(object)};
  const auto ok = co_await client_.call<v3::NFSPROC3_FSSTAT>(args, context);
  if (!ok) co_return Failure{ok.error()};
  co_return FileSystemUsage{ok->tbytes, ok->fbytes, ok->abytes, ok->tfiles, ok->ffiles, ok->afiles};
}

Task<Outcome<FileSystemInfo>> Nfs3::info(OperationContext context, Handle object) {
  const v3::FSINFO3args args{to_nfs_fh3(object)};
  const auto ok = co_await client_.call<v3::NFSPROC3_FSINFO>(args, context);
  if (!ok) co_return Failure{ok.error()};
  FileSystemInfo info;
  info.read_max = ok->rtmax;
  info.read_preferred = ok->rtpref;
  info.write_max = ok->wtmax;
  info.write_preferred = ok->wtpref;
  info.list_preferred = ok->dtpref;
  info.max_file_size = ok->maxfilesize;
  info.time_granularity = {ok->time_delta.seconds, ok->time_delta.nseconds};
  info.hard_links = (ok->properties & v3::FSF3_LINK) != 0;
  info.symlinks = (ok->properties & v3::FSF3_SYMLINK) != 0;
  info.times_can_be_set = (ok->properties & v3::FSF3_CANSETTIME) != 0;
  co_return info;
}

Task<Outcome<NameLimits>> Nfs3::name_limits(OperationContext context, Handle object) {
  const v3::PATHCONF3args args{to_nfs_fh3(object)};
  const auto ok = co_await client_.call<v3::NFSPROC3_PATHCONF>(args, context);
  if (!ok) co_return Failure{ok.error()};
  co_return NameLimits{ok->linkmax,          ok->name_max,         ok->no_trunc,
                       ok->chown_restricted, ok->case_insensitive, ok->case_preserving};
}

}  // namespace stag::nfs::client::nfs3
