// What an Observer is told of Calls and Replies as they travelled by RPC-over-RDMA.
#pragma once

#include "rpc/observer.h"
#include "rpc/rdma/served_call.h"
#include "rpcrdma/plan.h"

namespace stag::rpc::rdma {

// Before the Call is served.
inline ArrivedCall report_of(const ServedCall& call, const rpcrdma::CallArrival& arrival) {
  ArrivedCall report{.xid = arrival.xid};
  report.inline_bytes = arrival.deferred ? call.deferred_bytes() : arrival.payload.size();
  report.reads = static_cast<std::uint32_t>(arrival.items.size());
  for (const rpcrdma::ArrivedItem& item : arrival.items) report.read_bytes += item.length;
  if (arrival.long_call) report.position_zero_bytes = arrival.items.front().length;
  return report;
}

// RFC 8166 4.2: `header` begins with XID, version and credits.
inline SentReply report_of(ServedCall& call, Bytes header, const rpcrdma::ReplyPlan& plan) {
  SentReply report{.xid = call.xid(), .credits = load_be<std::uint32_t>(header.data() + 8)};
  const bool is_inline = plan.form == rpcrdma::Form::Inline;
  (is_inline ? report.inline_bytes : report.reply_chunk_bytes) = plan.stream_length;
  report.write_chunk_bytes = call.reply()->stream.size() - plan.stream_length;
  report.writes = static_cast<std::uint32_t>(plan.writes.size());
  return report;
}

}  // namespace stag::rpc::rdma
