// Clients against a list of facts: all interleavings to a bounded depth, and random steps.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "testing/nfs/client_model.h"
#include "testing/nfs/state_model.h"

namespace stag::nfs::state {
namespace {

using testing::ClientPair;
using testing::ClientStep;
using testing::kCourtesy;
using testing::kLease;

constexpr Duration kMoment = std::chrono::nanoseconds(1);

class Nfs4ClientModel : public ::testing::Test {
 protected:
  static Clients::Options options() {
    Clients::Options options{.epoch = 1, .lease = kLease, .courtesy = kCourtesy};
    options.limits.sessions = testing::kSessionsOfClient;
    return options;
  }
  // Performs every sequence of so many of these steps, each with owners that are new.
  void perform_all(const std::vector<ClientStep>& steps, int depth) {
    std::vector<std::size_t> at(static_cast<std::size_t>(depth), 0);
    for (bool more = true; more && !HasFailure();) {
      {
        ClientPair pair(clients_, now_);
        for (const std::size_t i : at) pair.perform(steps[i]);
        pair.compare();
        if (at.back() == 0) pair.compare_number();
      }
      more = false;
      for (std::size_t digit = at.size(); digit-- > 0 && !more;) {
        more = ++at[digit] < steps.size();
        if (!more) at[digit] = 0;
      }
    }
    EXPECT_TRUE(clients_.list(now_).empty());
  }

  TimePoint now_ = TimePoint() + std::chrono::hours(1);
  Clients clients_{options()};
};

TEST_F(Nfs4ClientModel, agrees_on_all_interleavings_of_clients_with_sessions) {
  perform_all(
      {
          {.what = ClientStep::ExchangeId},
          {.what = ClientStep::ExchangeId, .verifier = 1},
          {.what = ClientStep::ExchangeId, .principal = 1},
          {.what = ClientStep::Update},
          {.what = ClientStep::CreateSession, .confirmed = false, .which = 1},
          {.what = ClientStep::CreateSession, .which = 1},
          {.what = ClientStep::CreateSession, .which = 0},
          {.what = ClientStep::DestroySession},
          {.what = ClientStep::DestroyClientid},
          {.what = ClientStep::Sequence, .which = 1},
          {.what = ClientStep::Finish},
          {.what = ClientStep::Hold},
          {.what = ClientStep::Pass, .time = kLease + kMoment},
          {.what = ClientStep::Expire},
      },
      testing::depth_or(5));
}

TEST_F(Nfs4ClientModel, agrees_on_all_interleavings_of_clients_without_sessions) {
  perform_all(
      {
          {.what = ClientStep::SetClientid},
          {.what = ClientStep::SetClientid, .verifier = 1},
          {.what = ClientStep::SetClientid, .principal = 1},
          {.what = ClientStep::Confirm, .confirmed = false, .v40 = true},
          {.what = ClientStep::Confirm, .v40 = true},
          {.what = ClientStep::Confirm, .v40 = true, .which = 1},
          {.what = ClientStep::Renew, .v40 = true},
          {.what = ClientStep::DestroyClientid, .v40 = true},
          {.what = ClientStep::Hold, .v40 = true},
          {.what = ClientStep::Pass, .time = kLease + kMoment},
          {.what = ClientStep::Expire},
          {.what = ClientStep::End, .v40 = true, .which = 1},
      },
      testing::depth_or(5));
}

ClientStep random_client_step(std::mt19937& random) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  constexpr std::array kOften = {
      ClientStep::ExchangeId,    ClientStep::ExchangeId,  ClientStep::CreateSession,
      ClientStep::CreateSession, ClientStep::Sequence,    ClientStep::Sequence,
      ClientStep::Sequence,      ClientStep::Finish,      ClientStep::Finish,
      ClientStep::SetClientid,   ClientStep::SetClientid, ClientStep::Confirm,
      ClientStep::Confirm,       ClientStep::Renew,       ClientStep::Hold,
      ClientStep::Drop,          ClientStep::Pass,        ClientStep::DestroySession,
  };
  constexpr std::array kSeldom = {ClientStep::Update, ClientStep::DestroyClientid,
                                  ClientStep::Expire, ClientStep::End};
  constexpr std::array<Duration, 4> kTimes = {kMoment, kLease / 2, kLease / 2, kLease + kMoment};
  ClientStep step;
  const bool seldom = below(5) == 0;
  step.what = seldom ? kSeldom[static_cast<std::size_t>(below(kSeldom.size()))]
                     : kOften[static_cast<std::size_t>(below(kOften.size()))];
  step.owner = below(2);
  step.verifier = below(3) == 0 ? 1 : 0;
  step.principal = below(5) == 0 ? 1 : 0;
  step.confirmed = below(3) != 0;
  step.v40 = below(2) == 0;
  step.which = static_cast<std::uint32_t>(below(6) == 0 ? 2 : below(3) == 0 ? 0 : 1);
  if (step.what == ClientStep::Confirm) step.which = step.which == 2 ? 2u : 1 - step.which;
  step.time = below(40) == 0 ? kCourtesy : kTimes[static_cast<std::size_t>(below(kTimes.size()))];
  return step;
}

TEST_F(Nfs4ClientModel, agrees_after_many_random_steps) {
  const int steps = testing::random_steps();
  std::mt19937 random(18);
  {
    ClientPair pair(clients_, now_);
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      pair.perform(random_client_step(random));
      if (i % 64 == 0) pair.compare();
      if (i % 4096 == 0) pair.compare_number();
      EXPECT_FALSE(HasFailure()) << "step " << i;
    }
  }
  EXPECT_TRUE(clients_.list(now_).empty());
}

}  // namespace
}  // namespace stag::nfs::state
