#include "nfs/acl/acl_map.h"

#include <gtest/gtest.h>

#include <random>

#include "nfs/acl/owner_name.h"

namespace stag::nfs::nfs4 {
namespace {

using Tag = vfs::AclEntry::Tag;

constexpr std::uint32_t kAllow = v4::ACE4_ACCESS_ALLOWED_ACE_TYPE;
constexpr std::uint32_t kDeny = v4::ACE4_ACCESS_DENIED_ACE_TYPE;
constexpr std::uint32_t kReadBits = v4::ACE4_READ_DATA;
constexpr std::uint32_t kWriteBits = v4::ACE4_WRITE_DATA | v4::ACE4_APPEND_DATA;
constexpr std::uint32_t kExecuteBits = v4::ACE4_EXECUTE;

vfs::Acl acl_of(std::vector<vfs::AclEntry> entries) {
  return *vfs::Acl::from(std::move(entries));
}

// What the entries decide in order, for a user whom they name (RFC 8881 6.2.1).
bool aces_permit(const Aces& aces, std::uint32_t owner, std::uint32_t group,
                 const vfs::Credentials& who, std::uint32_t wanted) {
  for (const v4::nfsace4& ace : aces) {
    if (ace.flag & v4::ACE4_INHERIT_ONLY_ACE) continue;
    const bool of_group = (ace.flag & v4::ACE4_IDENTIFIER_GROUP) != 0;
    bool named = ace.who == "EVERYONE@";
    if (ace.who == "OWNER@") named = who.uid == owner;
    if (ace.who == "GROUP@") named = who.in_group(group);
    if (const auto id = owner_id(ace.who)) named = of_group ? who.in_group(*id) : who.uid == *id;
    if (!named) continue;
    if (ace.type == kDeny && (ace.access_mask & wanted) != 0) return false;
    if (ace.type == kAllow) wanted &= ~ace.access_mask;
    if (wanted == 0) return true;
  }
  return false;
}

std::uint32_t bits_of(std::uint32_t permission) {
  if (permission == 4) return kReadBits;
  return permission == 2 ? kWriteBits : kExecuteBits;
}

vfs::Acl random_acl(std::mt19937& random) {
  const auto any = [&] { return static_cast<std::uint32_t>(random() % 8); };
  std::vector<vfs::AclEntry> entries{
      {Tag::Owner, 0, any()}, {Tag::OwningGroup, 0, any()}, {Tag::Others, 0, any()}};
  for (std::uint32_t id = 1; id <= 2; ++id) {
    if (random() % 2) entries.push_back({Tag::User, id, any()});
    if (random() % 2) entries.push_back({Tag::Group, id, any()});
  }
  entries.push_back({Tag::Mask, 0, any()});
  return acl_of(std::move(entries));
}

constexpr std::uint32_t kOwner = 1;
constexpr std::uint32_t kGroup = 2;

// Entries of OWNER@, GROUP@, EVERYONE@, two users and two groups.
Aces random_aces(std::mt19937& random) {
  const std::string kNames[] = {"OWNER@", "GROUP@", "EVERYONE@", "1", "2"};
  Aces aces(1 + random() % 6);
  for (v4::nfsace4& ace : aces) {
    std::uint32_t mask = 0;
    for (const std::uint32_t bits : {kReadBits, kWriteBits, kExecuteBits})
      if (random() % 2) mask |= bits;
    const bool of_group = random() % 3 == 0;
    const std::size_t name = of_group ? 3 + random() % 2 : random() % std::size(kNames);
    ace = {random() % 2 ? kAllow : kDeny, of_group ? std::uint32_t{v4::ACE4_IDENTIFIER_GROUP} : 0u,
           mask, kNames[name]};
  }
  return aces;
}

// Three users, of any of three groups, each with each permission.
template <class Function>
void for_each_caller(Function function) {
  for (std::uint32_t uid = 1; uid <= 3; ++uid)
    for (std::uint32_t groups = 0; groups < 8; ++groups)
      for (const std::uint32_t permission : {1u, 2u, 4u}) {
        vfs::Credentials who;
        who.uid = uid;
        who.gid = 99;
        for (std::uint32_t group = 1; group <= 3; ++group)
          if (groups >> (group - 1) & 1) who.groups.push_back(group);
        function(who, permission);
      }
}

// Whatever a client sends is refused, or is a list that a store can keep: from_aces() ends with it.
TEST(Nfs4AclMap, makes_a_possible_list_of_any_entries_or_none) {
  const std::string kWho[] = {
      "OWNER@",     "GROUP@", "EVERYONE@",  "0",  "1",     "1", "4294967294",
      "4294967295", "-1",     "4294967296", "01", "NULL@", ""};
  const std::uint32_t kFlags[] = {0,
                                  v4::ACE4_IDENTIFIER_GROUP,
                                  v4::ACE4_FILE_INHERIT_ACE,
                                  v4::ACE4_FILE_INHERIT_ACE | v4::ACE4_INHERIT_ONLY_ACE,
                                  v4::ACE4_INHERIT_ONLY_ACE,
                                  ~0u};
  std::mt19937 random(11);
  int made = 0;
  for (int i = 0; i < 20000; ++i) {
    Aces aces(random() % 6);
    for (v4::nfsace4& ace : aces)
      ace = {static_cast<std::uint32_t>(random() % 9 / 4), kFlags[random() % 8 % std::size(kFlags)],
             static_cast<std::uint32_t>(random()), kWho[random() % std::size(kWho)]};
    const auto lists = from_aces(aces, i % 2 == 0);
    if (!lists) continue;
    ++made;
    ASSERT_TRUE(lists->access.has_value());
    EXPECT_TRUE(vfs::Acl::from({lists->access->entries().begin(), lists->access->entries().end()}));
  }
  EXPECT_GT(made, 1000);
}

TEST(Nfs4AclMap, a_list_has_the_same_meaning_in_either_form) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const vfs::Acl acl = random_acl(random);
    const Aces aces = to_aces({acl, {}}, false);
    for_each_caller([&](const vfs::Credentials& who, std::uint32_t permission) {
      ASSERT_EQ(aces_permit(aces, kOwner, kGroup, who, bits_of(permission)),
                acl.permits(kOwner, kGroup, who, permission));
    });
  }
}

// Of entries in any order a store may keep less than they allow, and never more.
TEST(Nfs4AclMap, a_list_of_any_entries_permits_nobody_what_they_deny) {
  std::mt19937 random(9);
  for (int i = 0; i < 2000; ++i) {
    const Aces aces = random_aces(random);
    const auto changes = from_aces(aces, false);
    ASSERT_TRUE(changes.ok());
    for_each_caller([&](const vfs::Credentials& who, std::uint32_t permission) {
      if (changes->access->permits(kOwner, kGroup, who, permission)) {
        ASSERT_TRUE(aces_permit(aces, kOwner, kGroup, who, bits_of(permission)))
            << "list " << i << ", uid " << who.uid << ", permission " << permission;
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Nfs4AclMap, what_is_denied_to_a_group_is_not_allowed_to_its_members_as_the_owning_group) {
  const Aces aces{{kDeny, v4::ACE4_IDENTIFIER_GROUP, kReadBits, "202"},
                  {kAllow, v4::ACE4_IDENTIFIER_GROUP, kReadBits | kWriteBits, "GROUP@"}};
  const auto changes = from_aces(aces, false);
  ASSERT_TRUE(changes.ok());
  vfs::Credentials of_both;
  of_both.uid = 7;
  of_both.groups = {200, 202};
  EXPECT_FALSE(changes->access->permits(1, 200, of_both, 4));
  EXPECT_TRUE(changes->access->permits(1, 200, of_both, 2));
}

TEST(Nfs4AclMap, a_list_that_was_read_is_set_to_the_same) {
  std::mt19937 random(8);
  for (int i = 0; i < 300; ++i) {
    const Aces aces = to_aces({random_acl(random), random_acl(random)}, true);
    const auto changes = from_aces(aces, true);
    ASSERT_TRUE(changes.ok());
    EXPECT_EQ(to_aces({*changes->access, *changes->defaults}, true), aces);
  }
}

TEST(Nfs4AclMap, a_mode_is_a_list) {
  const Aces aces = to_aces({vfs::Acl::of_mode(0640), {}}, false);
  const auto changes = from_aces(aces, false);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(*changes->access, vfs::Acl::of_mode(0640));
  EXPECT_FALSE(changes->defaults) << "a file has no default list";
}

TEST(Nfs4AclMap, a_right_that_is_denied_first_is_not_allowed) {
  const Aces aces{{kDeny, 0, kWriteBits, "7"}, {kAllow, 0, kReadBits | kWriteBits, "EVERYONE@"}};
  const auto changes = from_aces(aces, false);
  ASSERT_TRUE(changes.ok());
  vfs::Credentials seven;
  seven.uid = 7;
  EXPECT_FALSE(changes->access->permits(1, 1, seven, 2));
  EXPECT_TRUE(changes->access->permits(1, 1, seven, 4));
  EXPECT_FALSE(changes->access->permits(7, 1, seven, 2)) << "as the owner neither";
}

TEST(Nfs4AclMap, an_entry_that_cannot_be_kept_is_refused) {
  const auto status = [](const v4::nfsace4& ace, bool directory) {
    return from_aces({ace}, directory).error();
  };
  EXPECT_EQ(status({2, 0, kReadBits, "EVERYONE@"}, false), v4::NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(status({kAllow, v4::ACE4_NO_PROPAGATE_INHERIT_ACE, 0, "EVERYONE@"}, true),
            v4::NFS4ERR_ATTRNOTSUPP);
  EXPECT_EQ(status({kAllow, v4::ACE4_FILE_INHERIT_ACE, 0, "EVERYONE@"}, false), v4::NFS4ERR_INVAL);
  EXPECT_EQ(status({kAllow, v4::ACE4_INHERIT_ONLY_ACE, 0, "EVERYONE@"}, true), v4::NFS4ERR_INVAL);
  EXPECT_EQ(status({kAllow, 0, 0, "nobody we know"}, false), v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(status({kAllow, 0, 0, "4294967295"}, false), v4::NFS4ERR_BADOWNER);
}

}  // namespace
}  // namespace stag::nfs::nfs4
