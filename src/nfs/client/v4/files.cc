// Attributes, data, listings and facts in version 4.
#include <algorithm>
#include <array>
#include <vector>

#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/nfs4.h"
#include "nfs/client/v4/run.h"
#include "nfs/proto/nfs4.h"
#include "nfs/ulb/nfs3.h"

namespace stag::nfs::client::nfs4 {
namespace {

// Bytes of a message beside the data of a READ or WRITE: RPC header with AUTH_SYS, SEQUENCE, PUTFH.
constexpr std::uint32_t kFrame = 1024;
// Of results in front of the text of a link: SEQUENCE, PUTFH, lengths.
constexpr std::uint32_t kLinkFrame = 128;

v4::stable_how4 to_stable_how4(Stability stability) {
  switch (stability) {
    case Stability::Unstable:
      return v4::UNSTABLE4;
    case Stability::DataSync:
      return v4::DATA_SYNC4;
    case Stability::FileSync:
      return v4::FILE_SYNC4;
  }
  return v4::FILE_SYNC4;
}

Stability stability_of(v4::stable_how4 how) {
  if (how == v4::FILE_SYNC4) return Stability::FileSync;
  return how == v4::DATA_SYNC4 ? Stability::DataSync : Stability::Unstable;
}

Error unreadable(OperationContext context) {
  return Error::of_protocol(context, "sent attributes that cannot be read");
}
Error contradicts(OperationContext context) {
  return Error::of_protocol(context, "sent results that contradict each other");
}

// The data of a READ comes to `to`, where it did not lie there already.
Outcome<ReadPart> taken(OperationContext context, const v4::READ4resok& resok, MutableBytes to) {
  if (resok.data.size() > to.size())
    return Failure{Error::of_protocol(context, "sent more data than it was asked for")};
  rpc::copy_into(resok.data, to);
  return ReadPart{static_cast<std::uint32_t>(resok.data.size()), resok.eof};
}

// Of values that are not what was asked for.
Error fault_of(OperationContext context, const Values& values) {
  return values.state == Values::State::Absent ? contradicts(context) : unreadable(context);
}

// An entry whose attributes the server could not read has none (RFC 8881 5.8.1.12).
Outcome<ListedEntry> to_listed(OperationContext context, v4::entry4& entry, bool with_attributes) {
  std::optional<Values> values = values_of(entry.attrs);
  if (!values) return Failure{unreadable(context)};
  ListedEntry listed;
  listed.cookie = entry.cookie;
  listed.entry.name = std::move(entry.name);
  listed.entry.file_id = values->attributes.file_id;
  if (values->mounted_on_file_id != 0) listed.entry.file_id = values->mounted_on_file_id;
  if (!with_attributes || values->error != v4::NFS4_OK || !values->has_type) return listed;
  listed.entry.attributes = values->attributes;
  listed.entry.handle = values->handle;
  return listed;
}

}  // namespace

rpc::Channel& Nfs4::channel() const {
  return client_->channel();
}

std::shared_ptr<Protocol> Nfs4::with(const ProtocolOptions& options) const {
  return std::make_shared<Nfs4>(client_, options);
}

Task<void> Nfs4::close() {
  return client_->close();
}

Task<Outcome<Reply>> Nfs4::run(OperationContext context, Request& request) {
  return client_->run(context, request, options_);
}

Task<Outcome<Ok>> Nfs4::ask(OperationContext context, Handle object, const AskedAttributes& asked,
                            Values& to) {
  Request request;
  request.put_handle(object);
  request.add_getattr(asked, to);
  const Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  if (!to.whole()) co_return Failure{fault_of(context, to)};
  co_return Ok{};
}

Task<Outcome<Attributes>> Nfs4::getattr(OperationContext context, Handle object) {
  Delegations& delegations = client_->delegations();
  const Attributes* const known = delegations.attributes(object);
  if (known != nullptr && !client_->lapsed()) co_return *known;
  const std::uint64_t as_of = delegations.changes();
  Values got;
  Request request;
  request.put_handle(object);
  request.add_getattr(node_attributes(), got);
  SessionClient::Run run(*client_, context, request, options_);
  if (run.begun()) run.take(co_await run.send());
  if (!run.answered()) co_await run.rest();
  if (!run.answered()) co_return Failure{run.error()};
  if (!got.describe_node()) co_return Failure{fault_of(context, got)};
  delegations.remember(object, got.attributes, as_of);
  co_return got.attributes;
}

Task<Outcome<std::optional<Attributes>>> Nfs4::setattr(OperationContext context, File file,
                                                       SetAttributes attributes,
                                                       std::optional<Time> guard) {
  const Handle& object = file.handle;
  Request request;
  request.put_handle(object);
  if (guard) request.add(v4::OP_VERIFY, &Op::opverify, {changed_at(*guard)});
  const std::size_t at =
      request.add(v4::OP_SETATTR, &Op::opsetattr, {v4::stateid4{}, to_fattr4(attributes)});
  request.done_with(at);
  if (file.open != 0 && attributes.size) request.set_by({at, file.open, {}, {}});
  Values got;
  request.add_getattr(node_attributes(), got);
  // The server decides anew who may open it.
  if (attributes.mode || attributes.uid || attributes.gid) client_->give_back_of(object);
  const Outcome<Reply> reply = co_await run(context, request.once_only());
  if (!reply) co_return Failure{reply.error()};
  if (attributes.size) client_->delegations().on_resize(object, attributes.size);
  if (!got.describe_node()) co_return std::optional<Attributes>();
  co_return std::optional<Attributes>(got.attributes);
}

Task<Outcome<std::uint32_t>> Nfs4::access(OperationContext context, Handle object,
                                          std::uint32_t asked) {
  Request request;
  request.put_handle(object);
  const std::size_t at = request.add(v4::OP_ACCESS, &Op::opaccess, {asked});
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  auto* got = reply->get(at, &OpResult::opaccess);
  if (got == nullptr) co_return Failure{contradicts(context)};
  co_return got->resok4().access& asked;
}

// RFC 8267 section 6: provides for a text of `size` bytes where the link's attributes have it.
Task<Outcome<std::string>> Nfs4::readlink(OperationContext context, Handle symlink,
                                          std::optional<std::uint64_t> size) {
  Request request;
  request.put_handle(symlink);
  const std::size_t at = request.add(v4::OP_READLINK);
  // Some file systems give a size of 0 to links whose text they make up.
  if (size.value_or(0) != 0 && *size <= ulb::kMaxLinkText)
    request.results_max = kLinkFrame + static_cast<std::uint32_t>(*size);
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  auto* got = reply->get(at, &OpResult::opreadlink);
  if (got == nullptr) co_return Failure{contradicts(context)};
  const Buffer text = got->resok4().link.flatten();
  co_return std::string(text_of(text.bytes()));
}

std::size_t Nfs4::reads_at_once() const {
  const std::uint32_t most = std::min(options_.reads_at_once, ProtocolOptions::kMostReadsAtOnce);
  // Beside SEQUENCE and PUTFH; version 4.0 has no session, and no limit that is known.
  const std::uint32_t operations = client_->session().limits().ca_maxoperations;
  return std::max(1u,
                  operations == 0 ? most : std::min(most, operations - std::min(operations, 2u)));
}

Task<Outcome<std::vector<ReadPart>>> Nfs4::read_several(OperationContext context, File file,
                                                        std::vector<ReadRange> ranges) {
  Request request;
  request.put_handle(file.handle);
  const std::size_t first = request.size() + 1;
  InlineVector<rpc::ResultBuffer, ProtocolOptions::kMostReadsAtOnce> result_buffers;
  for (const ReadRange& each : ranges) {
    request.add_read(each.offset, each.to.size());
    result_buffers.push_back({v4::item::READ4resok_data, each.to});
  }
  if (file.open != 0) request.set_by({first, file.open, {}, {}});
  request.result_buffers = result_buffers;
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  std::vector<ReadPart> parts;
  parts.reserve(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const v4::READ4resok* const got = reply->read(first + i);
    if (got == nullptr) co_return Failure{contradicts(context)};
    const Outcome<ReadPart> part = taken(context, *got, ranges[i].to);
    if (!part) co_return Failure{part.error()};
    parts.push_back(*part);
  }
  co_return parts;
}

Task<Outcome<ReadPart>> Nfs4::read(OperationContext context, File file, std::uint64_t offset,
                                   MutableBytes to) {
  Request request;
  request.put_handle(file.handle);
  const std::size_t at = request.add_read(offset, to.size());
  if (file.open != 0) request.set_by({at, file.open, {}, {}});
  const std::array<rpc::ResultBuffer, 1> result_buffers{{{v4::item::READ4resok_data, to}}};
  request.result_buffers = result_buffers;
  SessionClient::Run run(*client_, context, request, options_);
  if (run.begun()) run.take(co_await run.send());
  if (!run.answered()) co_await run.rest();
  if (!run.answered()) co_return Failure{run.error()};
  const v4::READ4resok* const got = request.read(at);
  if (got == nullptr) co_return Failure{contradicts(context)};
  co_return taken(context, *got, to);
}

Task<Outcome<WritePart>> Nfs4::write(OperationContext context, File file, std::uint64_t offset,
                                     Bytes data, Stability stable) {
  Request request;
  request.put_handle(file.handle);
  const std::size_t at = request.add_write(offset, Rope::borrow(data), to_stable_how4(stable));
  if (file.open != 0) request.set_by({at, file.open, {}, {}});
  SessionClient::Run run(*client_, context, request, options_);
  if (run.begun()) run.take(co_await run.send());
  if (!run.answered()) co_await run.rest();
  if (!run.answered()) co_return Failure{run.error()};
  const v4::WRITE4resok* const got = request.written(at);
  if (got == nullptr) co_return Failure{contradicts(context)};
  const v4::WRITE4resok& resok = *got;
  if (resok.count > data.size())
    co_return Failure{Error::of_protocol(context, "wrote more data than it was given")};
  if (resok.count == 0 && !data.empty())
    co_return Failure{Error::of_protocol(context, "wrote nothing and gave no reason")};
  client_->delegations().on_write(file.handle, offset + resok.count);
  co_return WritePart{resok.count, stability_of(resok.committed), resok.writeverf};
}

Task<Outcome<Verifier>> Nfs4::commit(OperationContext context, Handle file, std::uint64_t offset,
                                     std::uint32_t count) {
  Request request;
  request.put_handle(file);
  const std::size_t at = request.add(v4::OP_COMMIT, &Op::opcommit, {offset, count});
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  auto* got = reply->get(at, &OpResult::opcommit);
  if (got == nullptr) co_return Failure{contradicts(context)};
  co_return got->resok4().writeverf;
}

Task<Outcome<ListedPart>> Nfs4::list(OperationContext context, Handle directory, ListPosition from,
                                     bool with_attributes, std::uint32_t size) {
  v4::READDIR4args args;
  args.cookie = from.cookie;
  args.cookieverf = from.verifier;
  // dircount bounds names and cookies only; maxcount bounds the whole reply.
  args.dircount = args.maxcount = size;
  args.attr_request = with_attributes ? entry_attributes().bitmap
                                      : bitmap_of({v4::FATTR4_RDATTR_ERROR, v4::FATTR4_FILEID});
  Request request;
  request.put_handle(directory);
  const std::size_t at = request.add(v4::OP_READDIR, &Op::opreaddir, std::move(args));
  Outcome<Reply> reply = co_await run(context, request);
  // RFC 8881 18.23.3: NOT_SAME is of the verifier.
  if (!reply && reply.error().is(Status::NotSync))
    co_return Failure{Error::of_status(context, Status::BadCookie)};
  if (!reply) co_return Failure{reply.error()};
  auto* got = reply->get(at, &OpResult::opreaddir);
  if (got == nullptr) co_return Failure{contradicts(context)};
  ListedPart part;
  part.verifier = got->resok4().cookieverf;
  part.eof = got->resok4().reply.eof;
  part.entries.reserve(got->resok4().reply.entries.size());
  for (v4::entry4& entry : got->resok4().reply.entries) {
    Outcome<ListedEntry> listed = to_listed(context, entry, with_attributes);
    if (!listed) co_return Failure{listed.error()};
    note_place(listed->entry.handle, listed->entry.attributes, directory, listed->entry.name);
    part.entries.push_back(*std::move(listed));
  }
  co_return part;
}

Task<Outcome<FileSystemUsage>> Nfs4::usage(OperationContext context, Handle object) {
  Values got;
  const Outcome<Ok> asked = co_await ask(context, object, usage_attributes(), got);
  if (!asked) co_return Failure{asked.error()};
  co_return got.usage;
}

// What the session carries limits transfers, too.
Task<Outcome<FileSystemInfo>> Nfs4::info(OperationContext context, Handle object) {
  Values got;
  const Outcome<Ok> asked = co_await ask(context, object, info_attributes(), got);
  if (!asked) co_return Failure{asked.error()};
  FileSystemInfo info = got.info;
  const v4::channel_attrs4& limits = client_->session().limits();
  const auto limited = [](std::uint32_t most, std::uint32_t message) {
    if (message == 0) return most;  // version 4.0 has no session
    const std::uint32_t data = message - kFrame;
    return most == 0 ? data : std::min(most, data);
  };
  info.read_max = info.read_preferred = limited(info.read_max, limits.ca_maxresponsesize);
  info.write_max = info.write_preferred = limited(info.write_max, limits.ca_maxrequestsize);
  if (got.lease_seconds != 0) client_->session().set_lease(std::chrono::seconds(got.lease_seconds));
  co_return info;
}

Task<Outcome<NameLimits>> Nfs4::name_limits(OperationContext context, Handle object) {
  Values got;
  const Outcome<Ok> asked = co_await ask(context, object, name_attributes(), got);
  if (!asked) co_return Failure{asked.error()};
  co_return got.names;
}

}  // namespace stag::nfs::client::nfs4
