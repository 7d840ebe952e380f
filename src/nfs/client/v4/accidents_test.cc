// Connections that are cut, and servers that restart, at every call of what version 4 has beside
// files and opens (nfs4_test.cc, held_test.cc): in both directions.
#include <gtest/gtest.h>

#include "testing/nfs/cut_back_channel.h"
#include "testing/nfs/delegated_world.h"
#include "testing/nfs/nfs4_client_world.h"

namespace stag::nfs::client {
namespace {

using testing::Accident;
using testing::CutBackChannel;
using testing::DelegatedWorld;
using testing::Nfs4ClientWorld;

constexpr std::array kAccidents = {Accident::CutBefore, Accident::CutAfter, Accident::Restart};

// The first thing that went wrong.
class Wrong {
 public:
  template <class T>
  bool check(std::string_view what, const Outcome<T>& outcome) {
    if (!outcome) note(std::string(what) + ": " + outcome.error().sentence);
    return outcome.ok();
  }
  void need(std::string_view what, bool truth) {
    if (!truth) note(std::string(what));
  }
  const std::string& first() const { return first_; }  // empty: nothing

 private:
  void note(std::string what) {
    if (first_.empty()) first_ = std::move(what);
  }
  std::string first_;
};

// -- what version 4.2 has -------------------------------------------------------------------------

// Attributes with names: what is made is made only once, and what is removed is there.
class XattrLife : public Nfs4ClientWorld {
 public:
  XattrLife() : Nfs4ClientWorld(2) {}
  std::string live() {
    Wrong wrong;
    const auto made = run(files().create(files().root(), "file", {.mode = 0640}));
    if (!wrong.check("create", made)) return wrong.first();
    const Handle of = made->handle;
    wrong.check("make", run(files().set_xattr(of, "colour", "red", XattrMode::Create)));
    wrong.check("replace", run(files().set_xattr(of, "colour", "blue", XattrMode::Replace)));
    const auto value = run(files().xattr(of, "colour"));
    if (wrong.check("get", value)) wrong.need("another value", *value == "blue");
    const auto names = run(files().list_xattrs(of));
    if (wrong.check("list", names))
      wrong.need("other names", *names == std::vector<std::string>{"colour"});
    wrong.check("remove", run(files().remove_xattr(of, "colour")));
    return wrong.first();
  }
};

class RangesLife : public Nfs4ClientWorld {
 public:
  RangesLife() : Nfs4ClientWorld(2) {}
  std::string live() {
    constexpr std::uint64_t kPiece = 64 << 10;
    Wrong wrong;
    const auto made = run(files().create(files().root(), "file", {.mode = 0640}));
    const auto second = run(files().create(files().root(), "copy", {.mode = 0640}));
    if (!wrong.check("create", made) || !wrong.check("create", second)) return wrong.first();
    const Handle of = made->handle;
    const std::string text(3 * kPiece, 'x');
    wrong.check("write", run(files().write_from(of, 0, bytes_of(text))));
    wrong.check("deallocate", run(files().deallocate(of, {kPiece, kPiece})));
    const auto hole = run(files().seek(of, 0, Content::Hole));
    if (wrong.check("find the hole", hole))
      wrong.need("it is elsewhere", *hole && **hole == kPiece);
    const auto data = run(files().seek(of, kPiece, Content::Data));
    if (wrong.check("find data", data))
      wrong.need("it is elsewhere", *data && **data == 2 * kPiece);
    wrong.check("allocate", run(files().allocate(of, {3 * kPiece, kPiece})));
    const auto size = run(files().getattr(of));
    if (wrong.check("getattr", size)) wrong.need("the size is another", size->size == 4 * kPiece);
    const auto copied = run(files().copy_range(of, {0, 4 * kPiece}, second->handle, 0));
    if (wrong.check("copy", copied)) wrong.need("less was copied", *copied == 4 * kPiece);
    wrong.check("clone", run(files().clone_range(of, {0, kPiece}, second->handle, 4 * kPiece)));
    const auto there = run(files().getattr(second->handle));
    if (wrong.check("getattr", there)) wrong.need("it is shorter", there->size == 5 * kPiece);
    return wrong.first();
  }
};

// Lives `World` once for each accident of each call that an undisturbed one makes.
template <class World>
void expect_no_accident_to_be_seen() {
  World undisturbed;
  undisturbed.files();
  const int from = undisturbed.channel.calls + 1;
  ASSERT_EQ(undisturbed.live(), "");
  ASSERT_GE(undisturbed.channel.calls, from);
  for (const Accident accident : kAccidents) {
    for (int at = from; at <= undisturbed.channel.calls; ++at) {
      World world;
      world.files();
      world.channel.accident = accident;
      world.channel.at = at;
      EXPECT_EQ(world.live(), "") << "accident " << static_cast<int>(accident) << ", call " << at;
      world.run(world.closed());
      EXPECT_TRUE(world.clients().empty()) << at;
    }
  }
  undisturbed.run(undisturbed.closed());
}

TEST(Nfs4Accidents42, attributes_with_names_are_made_and_removed_once_wherever_it_is_cut) {
  expect_no_accident_to_be_seen<XattrLife>();
}

TEST(Nfs4Accidents42, ranges_are_sought_made_freed_and_copied_wherever_it_is_cut) {
  expect_no_accident_to_be_seen<RangesLife>();
}

// -- delegations ----------------------------------------------------------------------------------

// Files are delegated, and given back where the client itself or the server wants it.
class DelegationLife : public DelegatedWorld {
 public:
  explicit DelegationLife(std::uint32_t minor) : DelegatedWorld(minor) { begin(); }
  // Its connection ends with what it carries, and the client has another one.
  void cut() {
    connection->end();
    connect();
  }
  std::string live() {
    Wrong wrong;
    reads(wrong, "old");
    SetAttributes mode;
    mode.mode = 0600;
    wrong.check("setattr, behind DELEGRETURN", run(files().setattr(file, mode)));
    wrong.need("it is still delegated", settled() == 0);
    reads(wrong, "old");
    wrong.check("another client's write", other_writes("new"));
    reads(wrong, "new");
    const auto open = run(files().open(file, kToWrite));
    if (!wrong.check("open for writing", open)) return wrong.first();
    wrong.check("write", run(files().write(open->file, 0, bytes_of("mine"))));
    wrong.check("another client's write of a file that is open", other_writes("late"));
    wrong.check("close", run(files().close(open->file)));
    reads(wrong, "late");
    wrong.check("remove", run(files().remove(files().root(), "file")));
    settled();
    const auto left = clients().empty() ? state::HeldCounts{} : clients().front().held;
    wrong.need("something is left", left.opens + left.delegations == 0);
    return wrong.first();
  }

  CutBackChannel::Plan back;

 private:
  std::shared_ptr<rpc::Channel> back_channel() override {
    return std::make_shared<CutBackChannel>(loop, service.service(), back);
  }
  std::unique_ptr<rpc::Channel> connection_of_version_4_0() override {
    return std::make_unique<CutBackChannel>(loop, listening.service(), back);
  }
  void reads(Wrong& wrong, std::string_view text) {
    const auto open = run(files().open(file, kToRead));
    if (!wrong.check("open", open)) return;
    std::array<std::byte, 8> to;
    const auto read = run(files().read(open->file, 0, to));
    if (wrong.check("read", read))
      wrong.need("other data", text_of(Bytes(to).first(read->count)) == text);
    wrong.check("close", run(files().close(open->file)));
  }
  // How much is delegated when what was lost was sent again.
  std::uint32_t settled() {
    loop.drain();
    if (delegations() > 0) loop.pass(std::chrono::seconds(60));
    return delegations();
  }
};

class Nfs4DelegationAccidents : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static void end(DelegationLife& world) {
    world.run(world.closed());
    // One of version 4.0 cannot say that it ends.
    EXPECT_EQ(world.clients().empty(), GetParam() > 0);
    world.channel.server->nfs4.stop_callbacks();
  }
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4DelegationAccidents, ::testing::Values(0u, 1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4DelegationAccidents, files_are_given_back_wherever_the_connection_is_cut) {
  DelegationLife undisturbed(GetParam());
  const int from = undisturbed.channel.calls + 1;
  ASSERT_EQ(undisturbed.live(), "");
  ASSERT_GE(undisturbed.channel.calls, from);
  for (const Accident accident : {Accident::CutBefore, Accident::CutAfter}) {
    for (int at = from; at <= undisturbed.channel.calls; ++at) {
      DelegationLife world(GetParam());
      world.channel.accident = accident;
      world.channel.at = at;
      world.channel.on_accident = [&world] { world.cut(); };
      EXPECT_EQ(world.live(), "") << "accident " << static_cast<int>(accident) << ", call " << at;
      end(world);
    }
  }
  end(undisturbed);
}

TEST_P(Nfs4DelegationAccidents, callbacks_reach_the_client_wherever_their_connection_is_cut) {
  DelegationLife undisturbed(GetParam());
  const int from = undisturbed.back.calls + 1;
  ASSERT_EQ(undisturbed.live(), "");
  ASSERT_GE(undisturbed.back.calls, from) << "nothing was asked for";
  for (const Accident accident : {Accident::CutBefore, Accident::CutAfter}) {
    for (int at = from; at <= undisturbed.back.calls; ++at) {
      DelegationLife world(GetParam());
      world.back.accident = accident;
      world.back.at = at;
      world.back.on_cut = [&world] { world.cut(); };
      EXPECT_EQ(world.live(), "") << "accident " << static_cast<int>(accident) << ", call " << at;
      end(world);
    }
  }
  end(undisturbed);
}

// -- several connections --------------------------------------------------------------------------

// RFC 8881 18.37.3: on no connection that was not associated with the session before.
TEST(Nfs4Accidents, a_client_that_ends_on_a_connection_made_anew_leaves_nothing) {
  for (const std::uint32_t minor : {1u, 2u}) {
    Nfs4ClientWorld world(minor);
    const auto connect = [&] {
      auto connection = std::make_shared<rpc::Connection>();
      world.channel.server->channel.origin().connection = connection;
      return connection;
    };
    const auto first = connect();
    world.files();
    const auto second = connect();
    world.run(world.closed());
    EXPECT_TRUE(world.clients().empty()) << minor;
  }
}

TEST(Nfs4TrunkingAccidents, a_connection_joins_the_session_wherever_it_is_cut) {
  for (const std::uint32_t minor : {1u, 2u}) {
    Nfs4ClientWorld undisturbed(minor);
    undisturbed.files();
    const int from = undisturbed.channel.calls + 1;
    ASSERT_TRUE(
        undisturbed.run(undisturbed.protocol->joins(undisturbed.channel, undisturbed.channel)));
    for (const Accident accident : {Accident::CutBefore, Accident::CutAfter}) {
      for (int at = from; at <= undisturbed.channel.calls; ++at) {
        Nfs4ClientWorld world(minor);
        world.files();
        world.channel.accident = accident;
        world.channel.at = at;
        EXPECT_TRUE(world.run(world.protocol->joins(world.channel, world.channel))) << at;
        EXPECT_TRUE(world.run(world.files().getattr(world.files().root())).ok()) << at;
        world.run(world.closed());
        EXPECT_TRUE(world.clients().empty()) << at;
      }
    }
    undisturbed.run(undisturbed.closed());
  }
}

TEST(Nfs4TrunkingAccidents, a_connection_that_does_not_answer_joins_nothing_and_harms_nothing) {
  for (const Accident accident : {Accident::Lost, Accident::Swallowed}) {
    for (int place = 1; place <= 3; ++place) {  // two EXCHANGE_ID, BIND_CONN_TO_SESSION
      Nfs4ClientWorld world(1);
      world.files();
      world.channel.accident = accident;
      world.channel.at = world.channel.calls + place;
      EXPECT_FALSE(world.run(world.protocol->joins(world.channel, world.channel))) << place;
      EXPECT_TRUE(world.run(world.files().getattr(world.files().root())).ok()) << place;
      world.run(world.closed());
      EXPECT_TRUE(world.clients().empty()) << place;
    }
  }
}

}  // namespace
}  // namespace stag::nfs::client
