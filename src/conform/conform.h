// conform: cases that ask a server whether it does what an RFC says, and their verdicts. `stag
// conform` runs them against any server; they know nothing of ours. conform/nfs4 has the cases of
// NFS versions 4.0 to 4.2, conform/rpcrdma those of RPC-over-RDMA, report.h writes what came.
//
// A Suite is a list of cases and knows how to run each of them. Cases that no client can make come
// true are in the list, too, with the reason, so that the list is complete.
//
// Thread: one loop. Errors: whatever a server sends, and its silence, is a verdict. A case that is
// interrupted has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/loop.h"
#include "base/task.h"

namespace stag::conform {

enum class Outcome : std::uint8_t {
  Pass,
  Fail,     // `detail` says what came and what the RFC asks for
  Skipped,  // the server does not offer what the RFC leaves to it; `detail` says what
  Listed,   // no client can provoke it; `detail` says why
};

struct Verdict {
  Outcome outcome = Outcome::Pass;
  std::string detail{};

  static Verdict pass(std::string detail = {}) { return {Outcome::Pass, std::move(detail)}; }
  static Verdict fail(std::string detail) { return {Outcome::Fail, std::move(detail)}; }
  static Verdict skip(std::string detail) { return {Outcome::Skipped, std::move(detail)}; }
};

std::string_view to_string(Outcome outcome);

// The texts that name a case. All of them together, "suite.group.name", are what --filter matches.
struct Title {
  std::string suite;         // "nfs4.1", "rpcrdma"
  std::string group;         // "LOOKUP"
  std::string name;          // "NFS4ERR_NOENT, a name that is not there"
  std::string section;       // "RFC 8881 18.13"
  std::string requirements;  // ids of docs/requirements.tsv, separated by spaces; may be empty

  std::string full() const { return suite + "." + group + "." + name; }
};

struct Case {
  Title title;
  std::string listed{};    // why no client can provoke it; empty: it runs
  bool dangerous = false;  // some servers are known to die of it
  bool slow = false;       // it waits until a lease has run out
};

struct Result {
  Title title;
  Verdict verdict;
  double seconds = 0;
};

class Suite {
 public:
  virtual ~Suite() = default;
  virtual const std::vector<Case>& cases() const = 0;
  // Before the first case that runs; a sentence why none can run, or nothing.
  virtual Task<std::string> begin() = 0;
  virtual Task<Verdict> run(std::size_t index) = 0;
  // Why no more cases can be asked, or nothing.
  virtual std::string given_up() const { return {}; }
  // Removes what was made, after an interruption, too. A sentence about what remains, or nothing.
  virtual Task<std::string> end() = 0;
};

struct Selection {
  std::string pattern = "*";  // a shell pattern, matched against Title::full()
  bool dangerous = false;
  bool slow = false;

  bool has(const Case& one) const;
};

// Is told what happens.
class Observer {
 public:
  virtual void on_begin(const Title& title) = 0;
  virtual void on_result(Result result) = 0;

 protected:
  ~Observer() = default;
};

// Two sentences as one; either may be empty.
std::string joined(std::string first, const std::string& second);

// Runs the selected cases one after the other. A sentence about what prevented it or what remains,
// or nothing.
Task<std::string> run(Suite& suite, Selection selection, Loop& loop, CancelToken cancel,
                      Observer& observer);

}  // namespace stag::conform
