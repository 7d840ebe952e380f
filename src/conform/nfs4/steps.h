// The steps of a case: operations whose arguments are complete only when they are sent, because
// they name filehandles and stateids of the scene (scene.h).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conform/nfs4/scene.h"

namespace stag::conform::nfs4 {

struct Step {
  v4::nfs_opnum4 number;
  std::function<void(Scene&, Op&)> fill{};              // the arguments; none: it has none
  std::function<void(Scene&, const OpResult&)> take{};  // what to keep of results that are OK
  // Owners whose sequence numbers it takes (version 4.0), by the name of an owner.
  std::function<std::vector<std::string>(Scene&)> owners{};
};
using Steps = std::vector<Step>;

// Attribute numbers (RFC 8881 5, RFC 7862 12.2).
enum Attribute : std::uint32_t {
  kSupportedAttrs = 0,
  kType = 1,
  kChange = 3,
  kSize = 4,
  kFsid = 8,
  kLeaseTime = 10,
  kAcl = 12,
  kFilehandle = 19,
  kFileid = 20,
  kMode = 33,
  kOwner = 36,
  kTimeModify = 53,
  kTimeModifySet = 54,
  kUnknown = 200,
};
v4::bitmap4 bits(std::initializer_list<std::uint32_t> numbers);
v4::fattr4 mode_is(std::uint32_t mode);
v4::fattr4 size_is(std::uint64_t size);
v4::fattr4 owner_is(const std::string& owner);
// The attribute that says this type.
v4::fattr4 type_is(std::uint32_t type);
// Any attribute with a word as its value.
v4::fattr4 attribute(std::uint32_t number, std::uint32_t word);
v4::fattr4 truncated(v4::fattr4 whole);

// The last of all offsets, and a length that means up to the end.
inline constexpr std::uint64_t kLast = ~std::uint64_t{0};

constexpr std::uint32_t kRead = v4::OPEN4_SHARE_ACCESS_READ;
constexpr std::uint32_t kWrite = v4::OPEN4_SHARE_ACCESS_WRITE;
constexpr std::uint32_t kBoth = v4::OPEN4_SHARE_ACCESS_BOTH;

// Filehandles.
Step at(std::string name);
Step own();
Step putrootfh();
Step putpubfh();
Step getfh(std::string as);
Step savefh();
Step restorefh();
Step lookup(std::string name);
Step lookupp();
Step secinfo(std::string name);
Step secinfo_no_name(v4::secinfo_style4 style);
Step openattr();

// Attributes.
Step getattr(v4::bitmap4 asked);
Step setattr(std::string state, v4::fattr4 attributes);
Step verify(v4::fattr4 attributes);
Step nverify(v4::fattr4 attributes);
// With the attributes of the last GETATTR.
Step verify_same();
Step nverify_same();
Step access(std::uint32_t wanted);

// Names.
Step create(std::string name, v4::nfs_ftype4 type, v4::fattr4 attributes = mode_is(0755));
Step symlink(std::string name, std::string target);
Step remove(std::string name);
Step rename(std::string from, std::string to);
Step link(std::string name);
Step readlink();
struct Listing {
  std::uint64_t cookie = 0;
  std::string after{};     // of numbers, instead of the cookie
  std::string verifier{};  // of verifiers; empty: zeros
  std::uint32_t dircount = 8192, maxcount = 8192;
  v4::bitmap4 asked{};
};
Step readdir(Listing listing = {});

// Data.
Step read(std::string state, std::uint64_t offset, std::uint32_t count);
// The number "written" is what the last WRITE or COPY said.
Step write(std::string state, std::uint64_t offset, std::string text,
           v4::stable_how4 stable = v4::FILE_SYNC4);
Step commit(std::uint64_t offset = 0, std::uint32_t count = 0);

// Added to a client ID it makes one that nobody gave. Both words change: a server may know its own
// start by one of them (Linux does), and only where that differs it says NFS4ERR_STALE_CLIENTID.
inline constexpr std::uint64_t kOfNobody = 0x0123'4567'0123'4567;

// Opens and locks.
struct Opening {
  std::string name{};  // of the file in the current folder, and of its handle and stateid
  std::uint32_t access = kBoth;
  std::uint32_t deny = v4::OPEN4_SHARE_DENY_NONE;
  std::string owner = "owner";
  std::string as{};  // another name for handle and stateid
  // nullopt: does not create.
  std::optional<v4::createmode4> create{};
  v4::fattr4 attributes = mode_is(0644);
  v4::open_claim_type4 claim = v4::CLAIM_NULL;
  std::int32_t seqid_off = 0;      // added to the sequence number of version 4.0
  std::uint64_t clientid_off = 0;  // added to the client ID
  unsigned char verifier = 1;
  // Asks for a delegation to read, whose stateid is "delegation of " and the file's name.
  bool delegated = false;
  std::string delegation{};  // the stateid of CLAIM_DELEGATE_CUR; empty: zeros
};
Step open(Opening opening);
Step open_confirm(std::string state, std::int32_t seqid_off = 0);
Step open_downgrade(std::string state, std::uint32_t access, std::uint32_t deny = 0);
Step close(std::string state, std::int32_t seqid_off = 0);
struct Locking {
  std::string open{};  // the stateid of the open; empty: `held` is extended
  std::string held{};  // the name of the lock stateid
  v4::nfs_lock_type4 type = v4::WRITE_LT;
  std::uint64_t offset = 0, length = 10;
  std::string owner = "locker";
  bool reclaim = false;
  std::int32_t seqid_off = 0;
  std::uint64_t clientid_off = 0;  // added to that of the lock owner
};
Step lock(Locking locking);
Step lockt(v4::nfs_lock_type4 type, std::uint64_t offset, std::uint64_t length,
           std::string owner = "tester");
Step locku(std::string held, std::uint64_t offset = 0, std::uint64_t length = ~std::uint64_t{0});
Step delegreturn(std::string state);
Step delegpurge();
Step test_stateid(std::vector<std::string> states);
Step free_stateid(std::string state);

// Ranges of files, and copies (version 4.2).
Step allocate(std::string state, std::uint64_t offset, std::uint64_t length);
Step deallocate(std::string state, std::uint64_t offset, std::uint64_t length);
Step seek(std::string state, std::uint64_t offset, v4::data_content4 what);
Step read_plus(std::string state, std::uint64_t offset, std::uint32_t count);
Step io_advise(std::string state);
Step write_same(std::string state);
Step copy(std::string from, std::string to, std::uint64_t offset, std::uint64_t count);
Step clone(std::string from, std::string to, std::uint64_t offset, std::uint64_t count);
// The copy stateid is "notice".
Step copy_notify(std::string state);

// An operation on a file by the stateid of an open, a lock or a delegation: LOCK by that of an
// open, COPY and CLONE not at all.
Step by_stateid(v4::nfs_opnum4 operation, std::string state);

// COMPOUNDs that prepare: a new file in "own", open for reading and writing; and a lock of it.
Steps a_file(std::string name = "f");
Steps a_lock(v4::nfs_lock_type4 type = v4::WRITE_LT, std::uint64_t offset = 10,
             std::uint64_t length = 10);

// Any other operation, with arguments that name nothing.
template <class Args>
Step plain(v4::nfs_opnum4 number, Args& (Op::*arguments)(), std::type_identity_t<Args> value) {
  return {number, [arguments, value](Scene&, Op& to) { (to.*arguments)() = value; }};
}
inline Step plain(v4::nfs_opnum4 number) {
  return {number};
}
// Arguments with a stateid.
template <class Args>
Step with_state(v4::nfs_opnum4 number, Args& (Op::*arguments)(), v4::stateid4 Args::*place,
                std::string state, std::type_identity_t<Args> value = {}) {
  return {number, [arguments, place, state, value](Scene& scene, Op& to) {
            (to.*arguments)() = value;
            (to.*arguments)().*place = scene.stateid(state);
          }};
}

}  // namespace stag::conform::nfs4
