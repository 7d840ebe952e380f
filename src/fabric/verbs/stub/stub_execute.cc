// What a work request does at the other side.
#include <algorithm>
#include <cstring>

#include "fabric/verbs/stub/stub_objects.h"

namespace stag::fabric::stub {
namespace {

std::vector<std::byte> gathered(const Request& request) {
  if ((request.work.send_flags & IBV_SEND_INLINE) != 0) return request.bytes;
  std::vector<std::byte> bytes;
  for (const ibv_sge& piece : request.memory) {
    const auto* from = reinterpret_cast<const std::byte*>(piece.addr);
    bytes.insert(bytes.end(), from, from + piece.length);
  }
  return bytes;
}

void scatter(Bytes bytes, const std::vector<ibv_sge>& memory) {
  for (const ibv_sge& piece : memory) {
    const std::size_t size = std::min<std::size_t>(piece.length, bytes.size());
    if (size != 0) std::memcpy(reinterpret_cast<void*>(piece.addr), bytes.data(), size);
    bytes = bytes.subspan(size);
  }
}

std::uint64_t length_of(const std::vector<ibv_sge>& memory) {
  std::uint64_t length = 0;
  for (const ibv_sge& piece : memory) length += piece.length;
  return length;
}

ibv_wc_status check_source(Qp& qp, const Request& request) {
  if ((request.work.send_flags & IBV_SEND_INLINE) != 0) return IBV_WC_SUCCESS;
  return check_local(qp, request.memory, 0);
}

// The requester did what it may not: its peer's queue pair fails, too.
ibv_wc_status refuse(Qp& responder, ibv_wc_status status) {
  report_async(responder.context, IBV_EVENT_QP_ACCESS_ERR, &responder);
  fail_qp(responder);
  return status;
}

void complete_receive(Qp& qp, const Receive& receive, ibv_wc completion, bool solicited) {
  completion.wr_id = receive.id;
  completion.qp_num = qp.qp_num;
  if (completion.status == IBV_WC_SUCCESS) completion.opcode = IBV_WC_RECV;
  push_completion(qp.recv_cq, {completion, 0}, solicited);
}

// Places a message in the first receive of `qp`.
ibv_wc_status place(Qp& qp, const Receive& receive, const std::vector<std::byte>& bytes,
                    const ibv_send_wr& work) {
  ibv_wc completion{};
  const bool solicited = (work.send_flags & IBV_SEND_SOLICITED) != 0;
  completion.status = check_local(qp, receive.memory, IBV_ACCESS_LOCAL_WRITE);
  if (bytes.size() > length_of(receive.memory)) completion.status = IBV_WC_LOC_LEN_ERR;
  if (completion.status != IBV_WC_SUCCESS) {
    complete_receive(qp, receive, completion, solicited);
    fail_qp(qp);
    return IBV_WC_REM_INV_REQ_ERR;
  }
  if (work.opcode == IBV_WR_SEND_WITH_INV) {
    if (!invalidate(qp, work.invalidate_rkey)) {
      completion.status = IBV_WC_LOC_ACCESS_ERR;
      complete_receive(qp, receive, completion, solicited);
      return refuse(qp, IBV_WC_REM_ACCESS_ERR);
    }
    completion.wc_flags |= IBV_WC_WITH_INV;
    completion.invalidated_rkey = work.invalidate_rkey;
  }
  scatter(bytes, receive.memory);
  completion.byte_len = static_cast<std::uint32_t>(bytes.size());
  complete_receive(qp, receive, completion, solicited);
  return IBV_WC_SUCCESS;
}

std::optional<ibv_wc_status> send(Qp& qp, const Request& request) {
  const ibv_wc_status local = check_source(qp, request);
  if (local != IBV_WC_SUCCESS) return local;
  Qp& remote = *qp.remote;
  auto* const shared = static_cast<Srq*>(remote.srq);
  auto& receives = shared != nullptr ? shared->receives : remote.receives;
  if (receives.empty() || qp.starved) {
    if (device_of(remote.context).options.iwarp) return refuse(remote, IBV_WC_REM_OP_ERR);
    // Seven means: again and again.
    if (qp.rnr_retry == 7) return std::nullopt;
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  const Receive receive = shared != nullptr ? take_receive(*shared) : std::move(receives.front());
  if (shared == nullptr) receives.pop_front();
  return place(remote, receive, gathered(request), request.work);
}

ibv_wc_status write(Qp& qp, const Request& request) {
  const ibv_wc_status local = check_source(qp, request);
  if (local != IBV_WC_SUCCESS) return local;
  const std::vector<std::byte> bytes = gathered(request);
  const auto& at = request.work.wr.rdma;
  // Of a Write of nothing the handle is not looked at.
  if (bytes.empty()) return IBV_WC_SUCCESS;
  if (!remote_access(*qp.remote, at.rkey, at.remote_addr, bytes.size(), IBV_ACCESS_REMOTE_WRITE))
    return refuse(*qp.remote, IBV_WC_REM_ACCESS_ERR);
  std::memcpy(reinterpret_cast<void*>(at.remote_addr), bytes.data(), bytes.size());
  return IBV_WC_SUCCESS;
}

ibv_wc_status read(Qp& qp, const Request& request) {
  // On iWARP the sink's handle travels and is written by the peer.
  const bool iwarp = device_of(qp.context).options.iwarp;
  const int right = IBV_ACCESS_LOCAL_WRITE | (iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
  const ibv_wc_status local = check_local(qp, request.memory, right);
  if (local != IBV_WC_SUCCESS) return local;
  const std::uint64_t length = length_of(request.memory);
  const auto& at = request.work.wr.rdma;
  if (length == 0) return IBV_WC_SUCCESS;
  if (!remote_access(*qp.remote, at.rkey, at.remote_addr, length, IBV_ACCESS_REMOTE_READ))
    return refuse(*qp.remote, IBV_WC_REM_ACCESS_ERR);
  scatter({reinterpret_cast<const std::byte*>(at.remote_addr), length}, request.memory);
  return IBV_WC_SUCCESS;
}

}  // namespace

std::optional<ibv_wc_status> execute(Qp& qp, const Request& request) {
  const Locked network;
  switch (request.work.opcode) {
    case IBV_WR_BIND_MW:
      return bind_window(qp, request);
    case IBV_WR_LOCAL_INV:
      return invalidate(qp, request.work.invalidate_rkey) ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
    default:
      break;
  }
  const bool reaches = qp.remote != nullptr && qp.remote->state == IBV_QPS_RTS && !network->lost;
  if (!reaches) return IBV_WC_RETRY_EXC_ERR;
  switch (request.work.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_INV:
      return send(qp, request);
    case IBV_WR_RDMA_WRITE:
      return write(qp, request);
    case IBV_WR_RDMA_READ:
      return read(qp, request);
    default:
      return IBV_WC_LOC_QP_OP_ERR;
  }
}

}  // namespace stag::fabric::stub
