// Two queue pairs of the stub, connected by its RDMA-CM, as the tests of the stub use them: with
// the functions of the table and nothing of the provider.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "fabric/verbs/stub/stub_network.h"

namespace stag::fabric::stub {

inline sockaddr_in loopback(std::uint16_t port, const char* host = "127.0.0.1") {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

inline bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

struct RemoteHandle {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

// One end: an id, its queue pair, and 4 KiB of registered memory.
struct End {
  rdma_cm_id* id = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_mr* region = nullptr;
  std::array<std::byte, 4096> memory{};

  std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory.data() + offset);
  }
};

class StubTest : public ::testing::Test {
 protected:
  explicit StubTest(StubOptions options = rxe_like())
      : network(std::make_unique<StubNetwork>(std::vector{options})), verbs(network->functions()) {
    events = verbs->create_event_channel();
    if (events != nullptr) ::fcntl(events->fd, F_SETFL, O_NONBLOCK);
  }
  ~StubTest() override {
    for (End* end : {&a, &b}) drop(*end);
    if (listener != nullptr) verbs->destroy_id(listener);
    if (events != nullptr) verbs->destroy_event_channel(events);
    EXPECT_EQ(network->objects(), 0u);
    EXPECT_TRUE(network->misuses().empty()) << network->misuses().front();
  }

  void drop(End& end) {
    if (end.id != nullptr && end.id->qp != nullptr) verbs->destroy_qp(end.id);
    if (end.srq != nullptr) verbs->destroy_srq(end.srq);
    if (end.cq != nullptr) verbs->destroy_cq(end.cq);
    if (end.channel != nullptr) verbs->destroy_comp_channel(end.channel);
    if (end.region != nullptr) verbs->dereg_mr(end.region);
    if (end.pd != nullptr) verbs->dealloc_pd(end.pd);
    if (end.id != nullptr) verbs->destroy_id(end.id);
    end = End();
  }

  // The next event, acknowledged; -1 when there is none. Its id is kept in `told`.
  int next_event() {
    rdma_cm_event* event = nullptr;
    if (verbs->get_cm_event(events, &event) != 0) return -1;
    told = event->id;
    status = event->status;
    const auto* data = static_cast<const std::byte*>(event->param.conn.private_data);
    private_data.assign(data, data + event->param.conn.private_data_len);
    depths = {event->param.conn.responder_resources, event->param.conn.initiator_depth};
    const int type = event->event;
    verbs->ack_cm_event(event);
    return type;
  }

  void make_queues(End& end, bool shared = false, std::uint32_t slots = 8, int entries = 64) {
    end.pd = verbs->alloc_pd(end.id->verbs);
    end.channel = verbs->create_comp_channel(end.id->verbs);
    ::fcntl(end.channel->fd, F_SETFL, O_NONBLOCK);
    end.cq = verbs->create_cq(end.id->verbs, entries, &end, end.channel, 0);
    if (shared) {
      ibv_srq_init_attr wishes{};
      wishes.attr.max_wr = 8;
      end.srq = verbs->create_srq(end.pd, &wishes);
    }
    ibv_qp_init_attr wishes{};
    wishes.send_cq = wishes.recv_cq = end.cq;
    wishes.srq = end.srq;
    wishes.cap = {slots, 8, 4, 1, 64};
    wishes.qp_type = IBV_QPT_RC;
    ASSERT_EQ(verbs->create_qp(end.id, end.pd, &wishes), 0);
    end.region = verbs->reg_mr(
        end.pd, end.memory.data(), end.memory.size(),
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | window_right);
  }

  void listen() {
    auto here = loopback(0);
    ASSERT_EQ(verbs->create_id(events, &listener, nullptr, RDMA_PS_TCP), 0);
    ASSERT_EQ(verbs->bind_addr(listener, reinterpret_cast<sockaddr*>(&here)), 0);
    ASSERT_EQ(verbs->listen(listener, 8), 0);
    port = ntohs(listener->route.addr.src_sin.sin_port);
  }
  // `a` asks, with its address and route resolved and its queues made.
  void ask(rdma_conn_param wishes = {}) {
    auto there = loopback(port);
    ASSERT_EQ(verbs->create_id(events, &a.id, nullptr, RDMA_PS_TCP), 0);
    ASSERT_EQ(verbs->resolve_addr(a.id, nullptr, reinterpret_cast<sockaddr*>(&there), 1000), 0);
    ASSERT_EQ(next_event(), RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(verbs->resolve_route(a.id, 1000), 0);
    ASSERT_EQ(next_event(), RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_queues(a, false, slots, entries);
    ASSERT_EQ(verbs->connect(a.id, &wishes), 0);
  }
  void connect(bool shared = false, std::uint8_t rnr_retry = 7) {
    listen();
    ask();
    ASSERT_EQ(next_event(), RDMA_CM_EVENT_CONNECT_REQUEST);
    b.id = told;
    make_queues(b, shared);
    rdma_conn_param answer{};
    answer.rnr_retry_count = rnr_retry;
    ASSERT_EQ(verbs->accept(b.id, &answer), 0);
    ASSERT_EQ(next_event(), RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_EQ(next_event(), RDMA_CM_EVENT_ESTABLISHED);
  }

  ibv_sge piece(End& end, std::size_t offset, std::uint32_t length) {
    return {end.at(offset), length, end.region->lkey};
  }
  int post(End& end, ibv_wr_opcode opcode, ibv_sge memory, RemoteHandle remote = {},
           unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr work{}, *bad = nullptr;
    work.wr_id = next_id++;
    work.sg_list = &memory;
    work.num_sge = 1;
    work.opcode = opcode;
    work.send_flags = flags;
    work.wr.rdma = {remote.address, remote.key};
    if (opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV) {
      work.invalidate_rkey = remote.key;
      if (opcode == IBV_WR_LOCAL_INV) work.num_sge = 0;
    }
    return ibv_post_send(end.id->qp, &work, &bad);
  }
  int bind(End& end, ibv_mw* window, std::uint32_t key, std::size_t offset, std::size_t length,
           unsigned access) {
    ibv_send_wr work{}, *bad = nullptr;
    work.wr_id = next_id++;
    work.opcode = IBV_WR_BIND_MW;
    work.send_flags = IBV_SEND_SIGNALED;
    work.bind_mw.mw = window;
    work.bind_mw.rkey = key;
    work.bind_mw.bind_info = {end.region, end.at(offset), length, access};
    const int error = ibv_post_send(end.id->qp, &work, &bad);
    window->rkey = key;
    return error;
  }
  int receive(End& end, std::uint64_t id, std::size_t offset, std::uint32_t length) {
    ibv_sge memory = piece(end, offset, length);
    ibv_recv_wr work{id, nullptr, &memory, 1}, *bad = nullptr;
    return end.srq != nullptr ? ibv_post_srq_recv(end.srq, &work, &bad)
                              : ibv_post_recv(end.id->qp, &work, &bad);
  }
  // The next completion; status IBV_WC_TM_ERR stands for none.
  ibv_wc poll(End& end) {
    ibv_wc completion{};
    if (ibv_poll_cq(end.cq, 1, &completion) != 1) completion.status = IBV_WC_TM_ERR;
    return completion;
  }

  std::unique_ptr<StubNetwork> network;
  std::shared_ptr<const VerbsFunctions> verbs;
  rdma_event_channel* events = nullptr;
  rdma_cm_id* listener = nullptr;
  End a, b;
  int window_right = IBV_ACCESS_MW_BIND;
  std::uint32_t slots = 8;
  int entries = 64;
  std::uint16_t port = 0;
  std::uint64_t next_id = 100;

  rdma_cm_id* told = nullptr;
  int status = 0;
  std::vector<std::byte> private_data;
  std::pair<int, int> depths;
};

class SiwTest : public StubTest {
 protected:
  SiwTest() : StubTest(siw_like()) { window_right = 0; }
};

}  // namespace stag::fabric::stub
