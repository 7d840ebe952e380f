// Owners as names and as numbers (RFC 8881 5.9), with a name service that knows names, or not, or
// is slow.
#include "nfs/v4/attributes/id_map.h"

#include <algorithm>
#include <map>

#include "testing/held_executor.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Directory final : public NameService {
 public:
  std::optional<std::string> name_of(IdKind kind, std::uint32_t id) override {
    ++asked;
    for (const auto& [name, number] : names[kind == IdKind::Group])
      if (number == id) return name;
    return std::nullopt;
  }
  std::optional<std::uint32_t> id_of(IdKind kind, const std::string& name) override {
    ++asked;
    const auto& known = names[kind == IdKind::Group];
    const auto found = known.find(name);
    if (found == known.end()) return std::nullopt;
    return found->second;
  }
  std::map<std::string, std::uint32_t> names[2]{
      {{"root@here", 0}, {"anna@here", 1000}, {"bert@here", 1001}},
      {{"root@here", 0}, {"staff@here", 50}}};
  int asked = 0;
};

struct Mapping {
  std::unique_ptr<Directory> made = std::make_unique<Directory>();
  Directory& directory = *made;
  std::shared_ptr<HeldExecutor> worker = std::make_shared<HeldExecutor>(true);
  std::shared_ptr<IdMap> map(const IdMapOptions& options) {
    return std::make_shared<IdMap>(std::move(made), worker, options);
  }
  Nfs4Options nfs4(bool names) {
    Nfs4Options options;
    options.id_map = map({.gives_names = names});
    return options;
  }
};

class IdMapAlone : public ::testing::Test, public Mapping {
 protected:
  std::shared_ptr<IdMap> made_map(const IdMapOptions& options = {}) { return map(options); }
  Result<std::uint32_t, v4::nfsstat4> id_of(IdMap& map, const std::string& name,
                                            IdKind kind = IdKind::User) {
    return *loop_.run(map.id_of(kind, name, loop_, this));
  }
  static Task<void> answered(IdMap& map, Loop& loop, std::optional<v4::nfsstat4>& answer) {
    const auto found = co_await map.id_of(IdKind::User, "anna@here", loop, nullptr);
    answer = found ? v4::NFS4_OK : found.error();
  }
  ManualLoop loop_;
};

TEST_F(IdMapAlone, asks_once_and_remembers_for_ten_minutes) {
  const auto map = made_map();
  EXPECT_EQ(*id_of(*map, "anna@here"), 1000u);
  EXPECT_EQ(*id_of(*map, "anna@here"), 1000u);
  EXPECT_EQ(directory.asked, 1);
  EXPECT_EQ(*id_of(*map, "staff@here", IdKind::Group), 50u);
  EXPECT_EQ(directory.asked, 2);
  directory.names[0]["anna@here"] = 7;
  loop_.pass(std::chrono::minutes(11));
  EXPECT_EQ(*id_of(*map, "anna@here"), 7u);
}

TEST_F(IdMapAlone, remembers_for_a_minute_that_there_is_nobody) {
  const auto map = made_map();
  EXPECT_EQ(id_of(*map, "nobody@here").error(), v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(id_of(*map, "nobody@here").error(), v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(directory.asked, 1);
  directory.names[0]["nobody@here"] = 9;
  loop_.pass(std::chrono::seconds(61));
  EXPECT_EQ(*id_of(*map, "nobody@here"), 9u);
}

TEST_F(IdMapAlone, does_not_ask_for_what_is_no_name) {
  const auto map = made_map();
  EXPECT_EQ(id_of(*map, std::string(256, 'x')).error(), v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(id_of(*map, std::string("root\0@here", 10)).error(), v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(directory.asked, 0);
}

TEST_F(IdMapAlone, asks_to_come_back_when_it_takes_too_long_and_knows_it_then) {
  worker->at_once = false;
  const auto map = made_map();
  std::optional<v4::nfsstat4> answer;
  detach(answered(*map, loop_, answer));
  loop_.pass(std::chrono::seconds(4));
  EXPECT_FALSE(answer);
  loop_.pass(std::chrono::seconds(2));
  EXPECT_EQ(answer, v4::NFS4ERR_DELAY);
  worker->run_all();
  loop_.pass(std::chrono::seconds(1));
  EXPECT_EQ(*id_of(*map, "anna@here"), 1000u);
  EXPECT_EQ(directory.asked, 1);
}

TEST_F(IdMapAlone, asks_to_come_back_when_too_many_ask) {
  const auto map = made_map();
  worker->full = true;
  EXPECT_EQ(id_of(*map, "anna@here").error(), v4::NFS4ERR_DELAY);
  worker->full = false;
  EXPECT_EQ(*id_of(*map, "anna@here"), 1000u);
}

TEST_F(IdMapAlone, forgets_the_oldest_where_there_are_too_many) {
  const auto map = made_map({.entries = 10});
  const auto ask = [&](int i) {
    EXPECT_EQ(id_of(*map, std::to_string(i) + "@here").error(), v4::NFS4ERR_BADOWNER);
  };
  for (int i = 0; i < 1000; ++i) ask(i);
  directory.asked = 0;
  for (int i = 990; i < 1000; ++i) ask(i);
  EXPECT_EQ(directory.asked, 0);
  ask(989);
  EXPECT_EQ(directory.asked, 1);
}

// Of a server.
class Nfs4Owners : public Mapping, public Nfs4Served {
 protected:
  explicit Nfs4Owners(bool names = false) : Nfs4Served(nfs4(names)) {}
  v4::nfsstat4 give(const v4::nfs_fh4& file, const std::string& owner, const std::string& group) {
    xdr::Encoder values;
    values.string(xdr::kNoItem, owner);
    values.string(xdr::kNoItem, group);
    v4::SETATTR4args args;
    args.obj_attributes = {kOwners, std::move(values).finish().rope()};
    return run({putfh(file), op(v4::OP_SETATTR, &Op::opsetattr, std::move(args))}).status;
  }
  std::pair<std::string, std::string> owners_in(const v4::fattr4& attributes) {
    xdr::Decoder values(attributes.attr_vals.flatten());
    std::pair<std::string, std::string> owners;
    EXPECT_TRUE(values.string(xdr::kNoItem, owners.first));
    EXPECT_TRUE(values.string(xdr::kNoItem, owners.second));
    return owners;
  }
  std::pair<std::string, std::string> owners_of(const v4::nfs_fh4& file) {
    const Res results = run({putfh(file), getattr(kOwners)});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    return owners_in(results.resarray[1].opgetattr().resok4().obj_attributes);
  }
  using Pair = std::pair<std::string, std::string>;
  const v4::bitmap4 kOwners{0, 1u << (v4::FATTR4_OWNER - 32) | 1u << (v4::FATTR4_OWNER_GROUP - 32)};
};

TEST_F(Nfs4Owners, are_taken_as_names_and_as_numbers_and_told_as_numbers) {
  const Opened file = create("file");
  EXPECT_EQ(give(file.handle, "anna@here", "staff@here"), v4::NFS4_OK);
  EXPECT_EQ(owners_of(file.handle), (Pair{"1000", "50"}));
  EXPECT_EQ(give(file.handle, "4711", "bert@here"), v4::NFS4ERR_BADOWNER);  // no group
  EXPECT_EQ(give(file.handle, "4711", "4712"), v4::NFS4_OK);
  EXPECT_EQ(owners_of(file.handle), (Pair{"4711", "4712"}));
  EXPECT_EQ(give(file.handle, "nobody@here", "50"), v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(give(file.handle, "", "50"), v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(give(file.handle, std::string(1000, 'x'), "50"), v4::NFS4ERR_BADOWNER);
}

TEST_F(Nfs4Owners, may_be_names_when_OPEN_makes_the_file) {
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true);
  xdr::Encoder values;
  values.string(xdr::kNoItem, "anna@here");
  args.openhow.how().createattrs() = {{0, 1u << (v4::FATTR4_OWNER - 32)},
                                      std::move(values).finish().rope()};
  const Opened made = open(args);
  ASSERT_EQ(made.status, v4::NFS4_OK);
  EXPECT_EQ(owners_of(made.handle).first, "1000");
}

class Nfs4NamedOwners : public Nfs4Owners {
 protected:
  Nfs4NamedOwners() : Nfs4Owners(true) {}
};

TEST_F(Nfs4NamedOwners, are_told_as_names_and_as_numbers_where_there_is_no_name) {
  const Opened file = create("file");
  EXPECT_EQ(owners_of(file.handle), (Pair{"root@here", "root@here"}));
  EXPECT_EQ(give(file.handle, "1001", "4712"), v4::NFS4_OK);
  EXPECT_EQ(owners_of(file.handle), (Pair{"bert@here", "4712"}));
}

TEST_F(Nfs4NamedOwners, are_told_in_listings_that_had_to_ask_first) {
  for (const char* name : {"anna", "bert"}) {
    const Opened file = create(name);
    EXPECT_EQ(give(file.handle, std::string(name) + "@here", "staff@here"), v4::NFS4_OK);
  }
  v4::READDIR4args args;
  args.dircount = args.maxcount = 4096;
  args.attr_request = kOwners;
  const Res results = run({putrootfh(), lookup("data"), op(v4::OP_READDIR, &Op::opreaddir, args)});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  const auto& entries = results.resarray[2].opreaddir().resok4().reply.entries;
  ASSERT_EQ(entries.size(), 2u);
  for (const v4::entry4& entry : entries)
    EXPECT_EQ(owners_in(entry.attrs), (Pair{entry.name + "@here", "staff@here"}));
}

// The names in access control lists, which the same service knows.
template <class Owners>
class NamesInAcls : public Owners {
 protected:
  static v4::nfsace4 allow(std::uint32_t flags, std::string who) {
    return {v4::ACE4_ACCESS_ALLOWED_ACE_TYPE, flags, v4::ACE4_READ_DATA, std::move(who)};
  }
  static v4::fattr4 list_of(const std::vector<v4::nfsace4>& aces) {
    xdr::Encoder values;
    values.u32(static_cast<std::uint32_t>(aces.size()));
    for (const v4::nfsace4& ace : aces) encode(values, ace);
    return {{1u << v4::FATTR4_ACL}, std::move(values).finish().rope()};
  }
  v4::nfsstat4 set(const v4::nfs_fh4& file, const std::vector<v4::nfsace4>& aces) {
    v4::SETATTR4args args;
    args.obj_attributes = list_of(aces);
    return this->run({putfh(file), op(v4::OP_SETATTR, &Op::opsetattr, std::move(args))}).status;
  }
  // Users and groups (true) that are named, without OWNER@ and the like.
  std::vector<std::pair<std::string, bool>> named_in(const v4::nfs_fh4& file) {
    const auto results = this->run({putfh(file), getattr({1u << v4::FATTR4_ACL})});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    const auto& found = results.resarray[1].opgetattr().resok4().obj_attributes;
    xdr::Decoder values(found.attr_vals.flatten());
    std::uint32_t count = 0;
    EXPECT_TRUE(values.u32(count));
    std::vector<std::pair<std::string, bool>> named;
    for (std::uint32_t i = 0; i < count; ++i) {
      v4::nfsace4 ace;
      EXPECT_TRUE(decode(values, ace));
      const bool group = (ace.flag & v4::ACE4_IDENTIFIER_GROUP) != 0;
      const std::pair who{std::string(ace.who), group};
      const bool special = who.first.ends_with('@');
      if (!special && std::ranges::find(named, who) == named.end()) named.push_back(who);
    }
    return named;
  }
  using Named = std::vector<std::pair<std::string, bool>>;
};

class Nfs4NumberedAcls : public NamesInAcls<Nfs4Owners> {};
class Nfs4NamedAcls : public NamesInAcls<Nfs4NamedOwners> {};

TEST_F(Nfs4NumberedAcls, are_taken_with_names_and_told_with_numbers) {
  const Opened file = create("file");
  ASSERT_EQ(set(file.handle, {allow(0, "anna@here"), allow(v4::ACE4_IDENTIFIER_GROUP, "staff@here"),
                              allow(0, "4711")}),
            v4::NFS4_OK);
  Named named = named_in(file.handle);
  std::ranges::sort(named);
  EXPECT_EQ(named, (Named{{"1000", false}, {"4711", false}, {"50", true}}));
}

TEST_F(Nfs4NumberedAcls, change_nothing_where_they_name_somebody_unknown) {
  const Opened file = create("file");
  ASSERT_EQ(set(file.handle, {allow(0, "anna@here")}), v4::NFS4_OK);
  EXPECT_EQ(set(file.handle, {allow(0, "bert@here"), allow(0, "nobody@here")}),
            v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(set(file.handle, {allow(v4::ACE4_IDENTIFIER_GROUP, "anna@here")}), v4::NFS4ERR_BADOWNER)
      << "there is no such group";
  EXPECT_EQ(named_in(file.handle), (Named{{"1000", false}}));
}

TEST_F(Nfs4NumberedAcls, may_have_names_when_OPEN_makes_the_file) {
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true);
  args.openhow.how().createattrs() = list_of({allow(0, "bert@here")});
  const Opened made = open(args);
  ASSERT_EQ(made.status, v4::NFS4_OK);
  EXPECT_EQ(named_in(made.handle), (Named{{"1001", false}}));
}

TEST_F(Nfs4NumberedAcls, wait_for_names_no_longer_than_owners_do) {
  const Opened file = create("file");
  worker->full = true;
  EXPECT_EQ(set(file.handle, {allow(0, "anna@here")}), v4::NFS4ERR_DELAY);
  worker->full = false;
  EXPECT_EQ(set(file.handle, {allow(0, "anna@here")}), v4::NFS4_OK);
}

TEST_F(Nfs4NamedAcls, are_told_with_names_and_with_numbers_where_there_is_no_name) {
  const Opened file = create("file");
  ASSERT_EQ(set(file.handle,
                {allow(0, "1000"), allow(v4::ACE4_IDENTIFIER_GROUP, "50"), allow(0, "4711")}),
            v4::NFS4_OK);
  Named named = named_in(file.handle);
  std::ranges::sort(named);
  EXPECT_EQ(named, (Named{{"4711", false}, {"anna@here", false}, {"staff@here", true}}));
}

}  // namespace
}  // namespace stag::nfs::nfs4
