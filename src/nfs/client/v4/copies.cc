// COPY (RFC 7862 15.2), also from another server, which COPY_NOTIFY prepares (15.3); and the copies
// that the server goes on with after its answer: CB_OFFLOAD tells of their end (16.1), and
// OFFLOAD_STATUS how far they are, and of the end, too, where no callback comes (15.9). The stateid
// of the source is anonymous, but for that of another server.
#include "base/pause.h"
#include "nfs/client/v4/copy_notice.h"
#include "nfs/client/v4/in_progress.h"
#include "nfs/client/v4/nfs4.h"
#include "nfs/client/v4/status.h"
#include "rpcbind/universal_address.h"

namespace stag::nfs::client::nfs4 {
namespace {

// Shorter ones are over before a callback would say so.
constexpr std::uint64_t kWorthTelling = 4 << 20;
// How often a copy is looked at. A look costs one small call, and renews the lease.
constexpr Duration kLook = std::chrono::seconds(1);
// For OFFLOAD_CANCEL of a client that ends. It is a courtesy: the copy ends with its client, too.
constexpr Duration kToCancel = std::chrono::seconds(2);
// For the addresses that a server may have.
constexpr std::uint32_t kNoticeResults = 4 << 10;
// Times that a copy begins again that the server has forgotten.
constexpr int kMostBegun = 3;

Error untrue(OperationContext context) {
  return Error::of_protocol(context, "sent results that contradict each other");
}

Stability copy_stability(v4::stable_how4 how) {
  if (how == v4::FILE_SYNC4) return Stability::FileSync;
  return how == v4::DATA_SYNC4 ? Stability::DataSync : Stability::Unstable;
}

bool too_much(std::uint64_t count, FileRange range) {
  return range.length != 0 && count > range.length;
}

// A copy that has ended well.
Outcome<CopyPart> part_of(OperationContext context, const v4::write_response4& response,
                          FileRange range) {
  if (too_much(response.wr_count, range) || !response.wr_callback_id.empty())
    return Failure{untrue(context)};
  return CopyPart{response.wr_count, copy_stability(response.wr_committed), response.wr_writeverf};
}

}  // namespace

// RFC 7862 15.3.3: the address is not checked, and Linux's server takes no name in its place. A
// server that has the client ask again is not waited for: there are other ways to copy.
Task<Outcome<CopySource>> Nfs4::notify_copy(OperationContext context, File file, Address reader) {
  if (minor() < 2 || file.open == 0)
    co_return co_await Protocol::notify_copy(context, file, reader);
  v4::COPY_NOTIFY4args args;
  args.cna_destination_server.nl_type = v4::NL4_NETADDR;
  args.cna_destination_server.nl_addr() = {rpcbind::is_ipv6(reader.host) ? "tcp6" : "tcp",
                                           rpcbind::to_universal(reader)};
  Request request;
  request.put_handle(file.handle);
  const std::size_t at = request.add(v4::OP_COPY_NOTIFY, &Op::opoffload_notify, std::move(args));
  request.set_by({at, file.open, {}, {}});
  request.results_max = kNoticeResults;
  ProtocolOptions at_once = options_;
  at_once.jukebox_for = Duration::zero();
  Outcome<Reply> reply = co_await client_->run(context, request, at_once);
  if (!reply) co_return Failure{reply.error()};
  auto* came = reply->get(at, &OpResult::opcopy_notify);
  if (came == nullptr || came->resok4().cnr_source_server.empty())
    co_return Failure{untrue(context)};
  CopySource source(file.handle);
  source.notice = to_copy_notice(std::move(came->resok4()));
  co_return source;
}

Task<Outcome<ReadPart>> Nfs4::read_notified(OperationContext context, CopySource from,
                                            std::uint64_t offset, MutableBytes to) {
  if (minor() < 1 || !from.notice)
    co_return co_await Protocol::read_notified(context, from, offset, to);
  Request request;
  request.put_handle(from.file);
  const std::size_t at = request.add_read(offset, to.size(), stateid_of(*from.notice));
  const std::array<rpc::ResultBuffer, 1> result_buffers{{{v4::item::READ4resok_data, to}}};
  request.result_buffers = result_buffers;
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply) co_return Failure{reply.error()};
  const v4::READ4resok* const read = reply->read(at);
  if (read == nullptr || read->data.size() > to.size()) co_return Failure{untrue(context)};
  rpc::copy_into(read->data, to);
  co_return ReadPart{static_cast<std::uint32_t>(read->data.size()), read->eof};
}

Task<Outcome<CopyPart>> Nfs4::copy(OperationContext context, CopySource from, FileRange range,
                                   File to, std::uint64_t to_offset, const CopyWatch& watch) {
  if (minor() < 2) co_return co_await Protocol::copy(context, from, range, to, to_offset, watch);
  for (int begun = 0; begun < kMostBegun; ++begun) {
    const Outcome<v4::write_response4> response =
        co_await begin_copy(context, from, range, to, to_offset);
    if (!response) co_return Failure{response.error()};
    if (response->wr_callback_id.empty()) co_return part_of(context, *response, range);
    const Outcome<std::optional<CopyPart>> ended =
        co_await rest_of_copy(context, to.handle, range, *response, watch);
    if (!ended) co_return Failure{ended.error()};
    if (*ended) co_return **ended;
  }
  co_return Failure{Error::of_protocol(context, "forgets the copy again and again")};
}

// A server that cannot copy as is asked says so (15.2.3): then it may take its time. Linux's server
// copies from another one only so.
Task<Outcome<v4::write_response4>> Nfs4::begin_copy(OperationContext context,
                                                    const CopySource& from, FileRange range,
                                                    File to, std::uint64_t to_offset) {
  const bool is_long = from.notice || range.length == 0 || range.length >= kWorthTelling;
  bool waits = !(is_long && client_->hears_of_copies());
  for (;;) {
    const Offloads::Asking asking(client_->offloads());
    Request request;
    request.put_handle(from.file);
    request.add(v4::OP_SAVEFH);
    request.put_handle(to.handle);
    v4::COPY4args args{{}, {}, range.offset, to_offset, range.length, true, waits, {}};
    if (from.notice) {
      args.ca_src_stateid = stateid_of(*from.notice);
      args.ca_source_server = locations_of(*from.notice);
    }
    const std::size_t at = request.add(v4::OP_COPY, &Op::opcopy, std::move(args));
    if (to.open != 0) request.set_by({at, to.open, {}, {}});
    request.once_only().expect(v4::NFS4ERR_OFFLOAD_NO_REQS);
    Outcome<Reply> reply = co_await run(context, request);
    if (!reply) co_return Failure{reply.error()};
    const auto* came = reply->whatever(at, &OpResult::opcopy);
    if (came == nullptr) co_return Failure{untrue(context)};
    if (came->cr_status == v4::NFS4_OK) co_return came->cr_resok4().cr_response;
    const bool refused = came->cr_status == v4::NFS4ERR_OFFLOAD_NO_REQS;
    if (!refused) co_return Failure{untrue(context)};
    if (!waits) co_return Failure{Error::of_status(context, Status::NotSupported)};
    waits = false;
  }
}

// nullopt: the server does not know it any more, as after a restart.
Task<Outcome<std::optional<CopyPart>>> Nfs4::rest_of_copy(OperationContext context, Handle to,
                                                          FileRange range,
                                                          const v4::write_response4& begun,
                                                          const CopyWatch& watch) {
  Offloads::Copy copy(client_->offloads(), to_nfs_fh4(to), begun.wr_callback_id.front());
  const Outcome<std::optional<CopyPart>> ended =
      co_await followed(context, copy, range, begun, watch);
  client_->delegations().on_change();
  client_->delegations().on_resize(to, std::nullopt);
  // It writes no more once nobody waits for it.
  if (!ended && !copy.end) co_await cancel_copy(context, copy);
  co_return ended;
}

Task<Outcome<std::optional<CopyPart>>> Nfs4::followed(OperationContext context,
                                                      Offloads::Copy& copy, FileRange range,
                                                      const v4::write_response4& begun,
                                                      const CopyWatch& watch) {
  const auto cancelled = [&] { return options_.cancel.cancelled() || watch.cancel.cancelled(); };
  Loop& loop = channel().loop();
  TimePoint last_progress = loop.now();
  std::uint64_t known = 0;
  for (;;) {
    co_await told_or_due(copy, watch);
    if (copy.end) {
      const v4::offload_info4& end = *copy.end;
      if (end.coa_status != v4::NFS4_OK)
        co_return Failure{Error::of_status(context, to_status(end.coa_status))};
      const Outcome<CopyPart> part = part_of(context, end.coa_resok4(), range);
      if (!part) co_return Failure{part.error()};
      co_return std::optional(*part);
    }
    if (cancelled()) co_return Failure{cancelled_error(context, channel())};
    const Outcome<Look> look = co_await look_at(context, copy);
    if (copy.end) continue;
    if (!look) co_return Failure{look.error()};
    if (look->forgotten) co_return std::optional<CopyPart>();
    if (too_much(look->count, range)) co_return Failure{untrue(context)};
    if (look->complete && *look->complete != v4::NFS4_OK)
      co_return Failure{Error::of_status(context, to_status(*look->complete))};
    // The verifier is that of the COPY: where the server has restarted since, COMMIT tells.
    if (look->complete)
      co_return std::optional(CopyPart{look->count, Stability::Unstable, begun.wr_writeverf});
    if (look->count > known) {
      known = look->count;
      last_progress = loop.now();
      if (watch.progress) watch.progress(known);
    }
    const bool stands = loop.now() - last_progress >= options_.timeout;
    if (stands && options_.timeout > Duration::zero())
      co_return Failure{
          Error::of_call(context, rpc::CallError::transport(Reason::TimedOut, channel().where()))};
  }
}

// Until the server has told of the end, somebody cancels, or it is time to look.
Task<void> Nfs4::told_or_due(Offloads::Copy& copy, const CopyWatch& watch) {
  if (copy.end) co_return;
  CancelSource woken;
  const auto wake = [&woken] { woken.cancel(); };
  const CancelCallback cancelled(options_.cancel, wake);
  const CancelCallback given_up(watch.cancel, wake);
  const Offloads::Listening listening(copy, woken);
  co_await pause(channel().loop(), kLook, woken);
}

// A server need not have OFFLOAD_STATUS, and what it says of another kind of failure says nothing
// of the copy (15.9.3).
Task<Outcome<Nfs4::Look>> Nfs4::look_at(OperationContext context, const Offloads::Copy& copy) {
  Request request;
  request.put_handle(copy.file);
  const std::size_t at = request.add(v4::OP_OFFLOAD_STATUS, &Op::opoffload_status, {copy.stateid});
  request.expect(v4::NFS4ERR_BAD_STATEID);
  Outcome<Reply> reply = co_await run(context, request);
  if (!reply && reply.error().kind == Error::Kind::Nfs) co_return Look{};
  if (!reply) co_return Failure{reply.error()};
  const auto* came = reply->whatever(at, &OpResult::opoffload_status);
  if (came == nullptr) co_return Failure{untrue(context)};
  if (came->osr_status == v4::NFS4ERR_BAD_STATEID) co_return Look{.forgotten = true};
  if (came->osr_status != v4::NFS4_OK) co_return Failure{untrue(context)};
  const v4::OFFLOAD_STATUS4resok& now = came->osr_resok4();
  Look look{.count = now.osr_count};
  if (!now.osr_complete.empty()) look.complete = now.osr_complete.front();
  co_return look;
}

// Until the server has answered: what is written before that it may overwrite.
Task<void> Nfs4::cancel_copy(OperationContext context, const Offloads::Copy& copy) {
  if (!options_.cancel.cancelled()) co_await stop_copy(context, copy, options_);
  if (!options_.cancel.cancelled()) co_return;
  ProtocolOptions last = options_;
  last.cancel = {};
  last.timeout = kToCancel;
  last.jukebox_for = Duration::zero();
  co_await stop_copy(context, copy, last);
}

Task<void> Nfs4::stop_copy(OperationContext context, const Offloads::Copy& copy,
                           const ProtocolOptions& options) {
  Request request;
  request.put_handle(copy.file);
  request.add(v4::OP_OFFLOAD_CANCEL, &Op::opoffload_cancel, {copy.stateid});
  static_cast<void>(co_await client_->run(context, request.once_only(), options));
}

}  // namespace stag::nfs::client::nfs4
