// Rights of regions and windows, against the manual pages.
#include "fabric/verbs/stub/stub_pair_test.h"

namespace stag::fabric::stub {
namespace {

TEST_F(StubTest, a_write_and_a_read_move_bytes_without_the_peers_help) {
  connect();
  std::memcpy(a.memory.data(), "data", 4);
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 4), {b.at(100), b.region->rkey}), 0);
  EXPECT_EQ(std::memcmp(b.memory.data() + 100, "data", 4), 0);
  ASSERT_EQ(post(a, IBV_WR_RDMA_READ, piece(a, 50, 4), {b.at(100), b.region->rkey}), 0);
  EXPECT_EQ(std::memcmp(a.memory.data() + 50, "data", 4), 0);
  EXPECT_EQ(poll(a).opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(poll(a).opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(poll(b).status, IBV_WC_TM_ERR);
}

// What a region refuses fails the requester and its peer.
struct BadUse {
  const char* what;
  ibv_wr_opcode opcode;
  std::int64_t offset;
  std::uint32_t length;
  int access;  // of the region
};
constexpr BadUse kBadUses[] = {
    {"write without the right", IBV_WR_RDMA_WRITE, 0, 8,
     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ},
    {"read without the right", IBV_WR_RDMA_READ, 0, 8,
     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
    {"beyond the end", IBV_WR_RDMA_WRITE, 93, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
    {"before the beginning", IBV_WR_RDMA_WRITE, -1, 8,
     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE},
};

class BadUseTest : public StubTest, public ::testing::WithParamInterface<BadUse> {};

TEST_P(BadUseTest, fails_both_sides) {
  connect();
  const BadUse& bad = GetParam();
  ibv_mr* region = verbs->reg_mr(b.pd, b.memory.data() + 1000, 100, bad.access);
  ASSERT_NE(region, nullptr);
  const std::uint64_t address = b.at(1000) + static_cast<std::uint64_t>(bad.offset);
  ASSERT_EQ(post(a, bad.opcode, piece(a, 0, bad.length), {address, region->rkey}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_REM_ACCESS_ERR) << bad.what;
  ibv_async_event event{};
  ASSERT_EQ(verbs->get_async_event(b.id->verbs, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  verbs->ack_async_event(&event);
  ASSERT_EQ(post(b, IBV_WR_SEND, piece(b, 0, 1)), 0);
  EXPECT_EQ(poll(b).status, IBV_WC_WR_FLUSH_ERR);
  verbs->dereg_mr(region);
}

INSTANTIATE_TEST_SUITE_P(Stub, BadUseTest, ::testing::ValuesIn(kBadUses));

TEST_F(StubTest, remote_writing_needs_local_writing) {
  connect();
  EXPECT_EQ(verbs->reg_mr(b.pd, b.memory.data(), 8, IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(StubTest, local_memory_needs_a_region_that_covers_it) {
  connect();
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, {a.at(4090), 8, a.region->lkey}, {b.at(0), 1}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(StubTest, a_key_of_a_region_that_is_gone_opens_nothing) {
  connect();
  ibv_mr* region =
      verbs->reg_mr(b.pd, b.memory.data(), 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  const std::uint32_t key = region->rkey;
  EXPECT_EQ(verbs->dereg_mr(region), 0);
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 8), {b.at(0), key}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_REM_ACCESS_ERR);
}

class WindowTest : public StubTest {
 protected:
  void bind_one(unsigned access) {
    connect();
    window = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
    ASSERT_NE(window, nullptr);
    key = ibv_inc_rkey(window->rkey);
    ASSERT_EQ(bind(b, window, key, 200, 100, access), 0);
    ASSERT_EQ(poll(b).status, IBV_WC_SUCCESS);
    EXPECT_EQ(network->remote_handles(), 3u) << "two regions and the window";
  }
  ~WindowTest() override {
    if (window != nullptr) ibv_dealloc_mw(window);
  }
  ibv_mw* window = nullptr;
  std::uint32_t key = 0;
};

TEST_F(WindowTest, opens_its_range_with_its_right_until_it_is_invalidated) {
  bind_one(IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 100), {b.at(200), key}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(verbs->dereg_mr(b.region), EBUSY) << "a window is bound to it";
  ASSERT_EQ(post(b, IBV_WR_LOCAL_INV, {}, {0, key}), 0);
  EXPECT_EQ(poll(b).opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(network->remote_handles(), 2u);
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 100), {b.at(200), key}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, refuses_the_other_right) {
  bind_one(IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(post(a, IBV_WR_RDMA_READ, piece(a, 0, 100), {b.at(200), key}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, refuses_a_byte_outside) {
  bind_one(IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 100), {b.at(201), key}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, is_invalidated_by_a_send_that_names_it) {
  bind_one(IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(receive(b, 1, 0, 8), 0);
  ASSERT_EQ(post(a, IBV_WR_SEND_WITH_INV, piece(a, 0, 8), {0, key}), 0);
  const ibv_wc arrived = poll(b);
  EXPECT_NE(arrived.wc_flags & IBV_WC_WITH_INV, 0u);
  EXPECT_EQ(arrived.invalidated_rkey, key);
  EXPECT_EQ(network->remote_handles(), 2u);
}

TEST_F(WindowTest, is_not_bound_twice_and_only_where_its_region_allows) {
  bind_one(IBV_ACCESS_REMOTE_READ);
  ASSERT_EQ(bind(b, window, ibv_inc_rkey(key), 0, 8, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(poll(b).status, IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowTest, is_bound_by_a_program_that_knows_its_key) {
  connect();
  window = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
  window->rkey = ibv_inc_rkey(window->rkey);
  ASSERT_EQ(bind(b, window, ibv_inc_rkey(window->rkey), 0, 8, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(poll(b).status, IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowTest, binds_within_its_region_only) {
  connect();
  window = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
  ASSERT_EQ(bind(b, window, ibv_inc_rkey(window->rkey), 4000, 97, IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(poll(b).status, IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowTest, leaves_with_its_queue_pair) {
  bind_one(IBV_ACCESS_REMOTE_WRITE);
  verbs->destroy_qp(b.id);
  EXPECT_EQ(network->remote_handles(), 2u);
}

TEST_F(StubTest, an_invalidation_of_a_region_or_of_nothing_fails_both_sides) {
  connect();
  ASSERT_EQ(receive(b, 1, 0, 8), 0);
  ASSERT_EQ(post(a, IBV_WR_SEND_WITH_INV, piece(a, 0, 8), {0, b.region->rkey}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_NE(poll(b).status, IBV_WC_SUCCESS);
}

TEST_F(SiwTest, a_peer_may_invalidate_any_region_of_the_protection_domain) {
  connect();
  std::array<std::byte, 64> other{};
  ibv_mr* region =
      verbs->reg_mr(b.pd, other.data(), 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_EQ(receive(b, 1, 0, 8), 0);
  ASSERT_EQ(post(a, IBV_WR_SEND_WITH_INV, piece(a, 0, 8), {0, region->rkey}), 0);
  EXPECT_EQ(poll(b).invalidated_rkey, region->rkey);
  EXPECT_EQ(network->remote_handles(), 2u);
  verbs->dereg_mr(region);
}

TEST_F(SiwTest, has_no_windows_and_reads_into_one_piece_with_remote_rights) {
  connect();
  EXPECT_EQ(ibv_alloc_mw(b.pd, IBV_MW_TYPE_2), nullptr);
  EXPECT_EQ(post(b, IBV_WR_LOCAL_INV, {}, {0, b.region->rkey}), EINVAL);
  ibv_mr* local = verbs->reg_mr(a.pd, a.memory.data(), 64, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_EQ(post(a, IBV_WR_RDMA_READ, {a.at(0), 8, local->lkey}, {b.at(0), b.region->rkey}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_LOC_PROT_ERR);
  verbs->dereg_mr(local);
}

TEST(StubMemlock, what_is_registered_is_limited_in_pages) {
  StubOptions options = rxe_like();
  options.memlock = 2 * 4096;
  StubNetwork network({options});
  const auto verbs = network.functions();
  int count = 0;
  ibv_context** devices = verbs->get_devices(&count);
  ASSERT_EQ(count, 1);
  ibv_pd* pd = verbs->alloc_pd(devices[0]);
  alignas(4096) static std::array<std::byte, 3 * 4096> memory;
  EXPECT_EQ(verbs->reg_mr(pd, memory.data(), 2 * 4096 + 1, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ibv_mr* region = verbs->reg_mr(pd, memory.data(), 2 * 4096, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(verbs->reg_mr(pd, memory.data(), 1, IBV_ACCESS_LOCAL_WRITE), nullptr);
  verbs->dereg_mr(region);
  verbs->dealloc_pd(pd);
  verbs->free_devices(devices);
  EXPECT_EQ(network.objects(), 0u);
}

}  // namespace
}  // namespace stag::fabric::stub
