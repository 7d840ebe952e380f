// The other end of a connection, made of the stub's functions alone: it does what fabric/verbs
// would never do.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include "base/address.h"
#include "base/bytes.h"
#include "fabric/fabric.h"
#include "fabric/verbs/verbs_functions.h"

namespace stag::testing {

class RawVerbsPeer {
 public:
  using RunUntil = std::function<bool(const std::function<bool()>&)>;

  RawVerbsPeer(std::shared_ptr<const fabric::VerbsFunctions> functions, RunUntil run_until)
      : verbs_(std::move(functions)), run_until_(std::move(run_until)) {
    channel_ = verbs_->create_event_channel();
    ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
  }
  ~RawVerbsPeer() {
    if (id_ != nullptr && id_->qp != nullptr) verbs_->destroy_qp(id_);
    if (id_ != nullptr) verbs_->destroy_id(id_);
    if (listening_ != nullptr) verbs_->destroy_id(listening_);
    if (region_ != nullptr) verbs_->dereg_mr(region_);
    if (queue_ != nullptr) verbs_->destroy_cq(queue_);
    if (pd_ != nullptr) verbs_->dealloc_pd(pd_);
    verbs_->destroy_event_channel(channel_);
  }
  RawVerbsPeer(const RawVerbsPeer&) = delete;
  RawVerbsPeer& operator=(const RawVerbsPeer&) = delete;

  // With no receive posted; `rnr_retries`: how often its peer may send again for want of one.
  bool connect(std::uint16_t port, std::uint8_t rnr_retries, Bytes private_data = {}) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    verbs_->create_id(channel_, &id_, nullptr, RDMA_PS_TCP);
    verbs_->resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), 1000);
    verbs_->resolve_route(id_, 1000);
    make_queues();
    rdma_conn_param wishes{};
    wishes.private_data = private_data.data();
    wishes.private_data_len = static_cast<std::uint8_t>(private_data.size());
    wishes.rnr_retry_count = rnr_retries;
    wishes.responder_resources = wishes.initiator_depth = 4;
    if (verbs_->connect(id_, &wishes) != 0) return false;
    return run_until_([this] { return next_event() == RDMA_CM_EVENT_ESTABLISHED; });
  }

  // The port at which it waits for a request.
  std::uint16_t listen() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    verbs_->create_id(channel_, &listening_, nullptr, RDMA_PS_TCP);
    verbs_->bind_addr(listening_, reinterpret_cast<sockaddr*>(&at));
    verbs_->listen(listening_, 1);
    return ntohs(listening_->route.addr.src_sin.sin_port);
  }
  // Answers the request that has come, if any, with that private data, or turns it down.
  void answer(bool accepts, Bytes private_data) {
    if (next_event() != RDMA_CM_EVENT_CONNECT_REQUEST) return;
    id_ = told_;
    const auto size = static_cast<std::uint8_t>(private_data.size());
    if (!accepts) return static_cast<void>(verbs_->reject(id_, private_data.data(), size));
    make_queues();
    rdma_conn_param wishes{};
    wishes.private_data = private_data.data();
    wishes.private_data_len = size;
    wishes.responder_resources = wishes.initiator_depth = 4;
    verbs_->accept(id_, &wishes);
  }

  // Posts one request, and says how it has ended.
  ibv_wc_status post(ibv_wr_opcode opcode, fabric::RemoteMemory remote = {}) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory.data()),
                  static_cast<std::uint32_t>(memory.size()), region_->lkey};
    ibv_send_wr work{}, *bad = nullptr;
    work.sg_list = &piece;
    work.num_sge = 1;
    work.opcode = opcode;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma = {remote.offset, remote.handle};
    if (opcode == IBV_WR_SEND_WITH_INV) work.invalidate_rkey = remote.handle;
    if (ibv_post_send(id_->qp, &work, &bad) != 0) return IBV_WC_GENERAL_ERR;
    ibv_wc completion{};
    run_until_([&] { return ibv_poll_cq(queue_, 1, &completion) == 1; });
    return completion.status;
  }

  std::array<std::byte, 64> memory{};

 private:
  void make_queues() {
    pd_ = verbs_->alloc_pd(id_->verbs);
    queue_ = verbs_->create_cq(id_->verbs, 64, nullptr, nullptr, 0);
    region_ = verbs_->reg_mr(pd_, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr wishes{};
    wishes.send_cq = wishes.recv_cq = queue_;
    wishes.cap = {8, 8, 1, 1, 0};
    wishes.qp_type = IBV_QPT_RC;
    verbs_->create_qp(id_, pd_, &wishes);
  }
  int next_event() {
    rdma_cm_event* event = nullptr;
    if (verbs_->get_cm_event(channel_, &event) != 0) return -1;
    const int type = event->event;
    told_ = event->id;
    verbs_->ack_cm_event(event);
    return type;
  }

  const std::shared_ptr<const fabric::VerbsFunctions> verbs_;
  const RunUntil run_until_;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id *id_ = nullptr, *listening_ = nullptr, *told_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_mr* region_ = nullptr;
};

}  // namespace stag::testing
