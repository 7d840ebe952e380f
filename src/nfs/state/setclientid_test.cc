// SETCLIENTID and SETCLIENTID_CONFIRM, case by case (RFC 7530 16.33.5, 16.34.5).
#include <gtest/gtest.h>

#include <span>

#include "base/siphash.h"
#include "nfs/state/clients.h"

namespace stag::nfs::state {
namespace {

class SetClientId : public ::testing::Test {
 protected:
  static Verifier boot(std::uint8_t number) {
    Verifier verifier{};
    verifier[0] = std::byte{number};
    return verifier;
  }
  SetClientIdResult set(std::uint8_t incarnation, const std::string& principal = "one") {
    return clients_.set_clientid({bytes_of(id_), boot(incarnation), bytes_of(principal), "here"},
                                 now_);
  }
  ConfirmResult confirm(const SetClientIdResult& of, const std::string& principal = "one") {
    return clients_.confirm_clientid(of.clientid, of.confirm, bytes_of(principal), now_);
  }
  SetClientIdResult confirmed(std::uint8_t incarnation) {
    const SetClientIdResult made = set(incarnation);
    EXPECT_EQ(confirm(made).status, Status::Ok);
    return made;
  }
  Status renewed(const SetClientIdResult& client) {
    return clients_.renew_lease(client.clientid, now_).status;
  }
  void hold_something(const SetClientIdResult& client) {
    clients_.life(client.clientid)->states.fetch_add(1);
  }

  const std::string id_ = "a client";
  TimePoint now_{std::chrono::hours(1)};
  Clients clients_{{.epoch = 7, .lease = std::chrono::seconds(90), .key = {}, .limits = {}}};
};

TEST_F(SetClientId, makes_a_client_that_is_nothing_before_it_is_confirmed) {
  const SetClientIdResult made = set(1);
  EXPECT_EQ(renewed(made), Status::StaleClientid);
  EXPECT_EQ(confirm(made).status, Status::Ok);
  EXPECT_EQ(renewed(made), Status::Ok);
  EXPECT_EQ(confirm(made).status, Status::Ok) << "a retransmission";
}

TEST_F(SetClientId, keeps_the_client_and_confirms_again_for_the_same_incarnation) {
  const SetClientIdResult first = confirmed(1), second = set(1);
  EXPECT_EQ(second.clientid, first.clientid);
  EXPECT_NE(second.confirm, first.confirm);
  EXPECT_EQ(confirm(first).status, Status::Ok) << "not confirmed yet, the old one holds";
  const ConfirmResult changed = confirm(second);
  EXPECT_EQ(changed.status, Status::Ok);
  EXPECT_EQ(changed.ended, nullptr);
  EXPECT_EQ(confirm(first).status, Status::StaleClientid);
}

TEST_F(SetClientId, ends_the_client_when_another_incarnation_is_confirmed) {
  const SetClientIdResult first = confirmed(1), second = set(2);
  EXPECT_NE(second.clientid, first.clientid);
  EXPECT_EQ(second.ended, nullptr);
  EXPECT_EQ(renewed(first), Status::Ok);
  const ConfirmResult replaced = confirm(second);
  ASSERT_NE(replaced.ended, nullptr);
  EXPECT_EQ(replaced.ended->clientid, first.clientid);
  EXPECT_TRUE(replaced.ended->ended());
  EXPECT_EQ(renewed(first), Status::Expired);
}

TEST_F(SetClientId, replaces_one_that_waits_to_be_confirmed) {
  confirmed(1);
  const SetClientIdResult second = set(2), third = set(3), fourth = set(3);
  EXPECT_NE(third.clientid, second.clientid);
  EXPECT_NE(fourth.clientid, third.clientid);
  EXPECT_EQ(confirm(second).status, Status::StaleClientid);
  EXPECT_EQ(confirm(third).status, Status::StaleClientid);
  EXPECT_EQ(confirm(fourth).status, Status::Ok);
}

TEST_F(SetClientId, is_refused_to_another_principal_while_the_client_holds_something) {
  const SetClientIdResult first = confirmed(1);
  hold_something(first);
  EXPECT_EQ(set(1, "two").status, Status::ClidInuse);
  EXPECT_EQ(confirm(first, "two").status, Status::ClidInuse);
  now_ += std::chrono::seconds(91);
  const SetClientIdResult second = set(1, "two");
  EXPECT_EQ(second.status, Status::Ok);
  EXPECT_NE(second.ended, nullptr);
}

TEST_F(SetClientId, is_confirmed_by_what_it_returned_alone) {
  SetClientIdResult made = set(1);
  made.confirm[7] ^= std::byte{1};
  EXPECT_EQ(confirm(made).status, Status::StaleClientid);
}

TEST_F(SetClientId, has_a_verifier_that_depends_on_the_key_and_on_nothing_that_is_shown) {
  Clients others{{.epoch = 7, .lease = std::chrono::seconds(90), .key = {std::byte{1}}}};
  const Verifier theirs =
      others.set_clientid({bytes_of(id_), boot(1), bytes_of("one"), "here"}, now_).confirm;
  const Verifier ours = set(1).confirm;
  EXPECT_NE(ours, theirs);
  // What a copy's stateid, or a number of a file system, would be made of.
  const std::uint64_t first = 1;
  Verifier plain{};
  store_be(plain.data(), siphash({}, std::as_bytes(std::span(&first, 1))));
  EXPECT_NE(ours, plain);
}

TEST_F(SetClientId, knows_clients_of_an_earlier_start_from_those_that_ended) {
  const SetClientIdResult made = confirmed(1);
  now_ += std::chrono::seconds(91);
  EXPECT_EQ(clients_.expire(now_).size(), 1u);
  EXPECT_EQ(renewed(made), Status::Expired);
  EXPECT_EQ(clients_.renew_lease(std::uint64_t{6} << 40, now_).status, Status::StaleClientid);
}

TEST_F(SetClientId, has_other_clients_than_EXCHANGE_ID) {
  const SetClientIdResult made = confirmed(1);
  const ExchangeIdResult other =
      clients_.exchange_id({bytes_of(id_), boot(1), bytes_of("one"), "here"}, now_);
  EXPECT_NE(other.clientid, made.clientid);
  EXPECT_EQ(clients_.renew_lease(other.clientid, now_).status, Status::StaleClientid);
  CreateSessionArgs session;
  session.clientid = made.clientid;
  session.sequence = 1;
  session.principal = bytes_of("one");
  session.fore = {0, 1 << 20, 1 << 20, 4096, 8, 8};
  EXPECT_EQ(clients_.create_session(session, now_).status, Status::StaleClientid);
}

TEST_F(SetClientId, does_not_go_around_a_machine_credential) {
  const std::string owner = std::string(kOwnerWithoutSessions) + id_;
  ExchangeIdArgs args{bytes_of(owner), boot(1), bytes_of("one"), "here"};
  args.integrity = true;
  args.protection.machine_credential = true;
  const ExchangeIdResult machine = clients_.exchange_id(args, now_);
  CreateSessionArgs session;
  session.clientid = machine.clientid;
  session.sequence = machine.sequenceid;
  session.principal = bytes_of("one");
  session.integrity = true;
  session.fore = {0, 1 << 20, 1 << 20, 4096, 8, 8};
  ASSERT_EQ(clients_.create_session(session, now_).status, Status::Ok);
  EXPECT_EQ(set(1).status, Status::ClidInuse);
  EXPECT_EQ(set(2).status, Status::ClidInuse) << "another incarnation";
  EXPECT_FALSE(clients_.life(machine.clientid)->ended());
  now_ += std::chrono::seconds(91);
  const SetClientIdResult later = set(2);
  EXPECT_EQ(later.status, Status::Ok) << "its lease has run out";
  ASSERT_NE(later.ended, nullptr);
  EXPECT_EQ(later.ended->clientid, machine.clientid);
}

TEST_F(SetClientId, names_no_client_elsewhere_beyond_the_limit_of_an_address) {
  ClientLimits limits;
  limits.clients_of_address = 1;
  Clients clients{{.epoch = 7, .lease = std::chrono::seconds(90), .key = {}, .limits = limits}};
  const auto confirm = [&](std::string_view id, std::string_view address) {
    const auto made = clients.set_clientid({bytes_of(id), boot(1), bytes_of("one"), address}, now_);
    return std::pair(made.clientid,
                     clients.confirm_clientid(made.clientid, made.confirm, bytes_of("one"), now_));
  };
  const ClientId there = confirm("there", "192.0.2.2").first;
  clients.life(there)->states.fetch_add(1);
  now_ += std::chrono::seconds(91);
  clients.expire(now_);
  EXPECT_EQ(confirm("first", "192.0.2.1").second.status, Status::Ok);
  const ConfirmResult refused = confirm("second", "192.0.2.1").second;
  EXPECT_EQ(refused.status, Status::Delay);
  EXPECT_EQ(refused.lapsed, 0u);
  EXPECT_TRUE(clients.life(there)->lapsed());
}

TEST_F(SetClientId, again_after_the_lease_has_lost_nothing_that_nobody_wanted) {
  const SetClientIdResult made = confirmed(1);
  hold_something(made);
  now_ += std::chrono::seconds(91);
  EXPECT_TRUE(clients_.expire(now_).empty());
  EXPECT_EQ(renewed(made), Status::Ok);
  EXPECT_FALSE(clients_.life(made.clientid)->lapsed());
}

}  // namespace
}  // namespace stag::nfs::state
