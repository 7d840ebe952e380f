// Script: a case of NFSv4 as a value: what is prepared, what is sent, and what must come. A case
// that needs more than COMPOUNDs in a row has a function instead.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "conform/nfs4/steps.h"

namespace stag::conform::nfs4 {

// Minor versions, as a set.
using Minors = std::uint8_t;
inline constexpr Minors k40 = 1, k41 = 2, k42 = 4;
inline constexpr Minors kSessions = k41 | k42, kAll = k40 | k41 | k42;

using Statuses = std::vector<v4::nfsstat4>;
// A complaint about results whose status is as expected, or nothing.
using Check = std::function<std::string(Scene&, const v4::COMPOUND4res&)>;

// Sent where a case's steps drew NFS4_OK: shows that they did what they say. All but the last
// operation succeed.
struct Proof {
  Steps steps{};
  v4::nfsstat4 expect = v4::NFS4_OK;
  Check check{};
};

struct Script {
  std::string note{};  // what is special, in words
  Minors minors = kAll;
  // COMPOUNDs whose operations all succeed. After an OPEN at the end of one, the file's handle is
  // fetched and in version 4.0 the open is confirmed.
  std::vector<Steps> before{};
  // All but the last succeed; the last one has the case's operation, and one of `expect`. The first
  // of these names the case, the others are allowed, too.
  Steps steps{};
  Statuses expect{v4::NFS4_OK};
  Check check{};
  Proof proof{};
  bool stranger = false;  // `steps` are sent by another user
  bool earlier = false;   // an earlier operation of `steps` may answer with `expect`, too
  std::string group{};    // instead of the operation's name
  std::string section{};  // instead of that of the operation
  std::string requirements{};
  bool dangerous = false;
  bool slow = false;  // waits until a lease has run out
  bool last = false;  // uses up what others ask for: comes after them
  // Instead of `before` and `steps`.
  std::function<Task<Verdict>(Scene&)> run{};
  v4::nfs_opnum4 operation = v4::OP_ILLEGAL;  // of `run`; that of the last step is taken else

  v4::nfs_opnum4 subject() const { return steps.empty() ? operation : steps.back().number; }
};
using Scripts = std::vector<Script>;
// For functions that ask again and again.
using MakeSteps = std::function<Steps()>;

void append(Scripts& to, Scripts more);
// A case that is a function.
Script asked(v4::nfs_opnum4 operation, v4::nfsstat4 error, std::string note, Minors minors,
             std::function<Task<Verdict>(Scene&)> run, std::string section = {});

// Another user than any who owns anything here.
rpc::Credentials stranger();
// Sends the steps as one COMPOUND, and keeps what they take from the results.
Task<Reply> send_once(Scene& scene, const Steps& steps, bool by_stranger = false);
// The same, again while the server says NFS4ERR_DELAY.
Task<Reply> send(Scene& scene, const Steps& steps, bool by_stranger = false);
// The same for preparation; a sentence about what failed, or nothing.
Task<std::string> prepare(Scene& scene, Steps steps);
Task<Verdict> perform(const Script& script, Scene& scene);
// Gives up locks and opens, unless the server is silent.
Task<void> tidy(Scene& scene);

// Whether a server may answer NFS4ERR_NOTSUPP (RFC 8881 17, RFC 7862 13, RFC 8276 8).
bool optional(v4::nfs_opnum4 number);
std::string list_of(const Statuses& statuses);

// For functions: the verdict on what came.
Verdict expect(const Reply& reply, const Statuses& allowed, std::string_view what);

}  // namespace stag::conform::nfs4
