// What `stag find` looks for: conditions as those of find(1), all of which must hold.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/arguments.h"
#include "nfs/client/protocol/types.h"

namespace stag::cli {

class FindConditions {
 public:
  void declare(Arguments& arguments);
  // After the command line was parsed, and before the questions below. A sentence when something in
  // it has no sense. May block.
  std::optional<std::string> understand(const nfs::client::Time& now);

  struct Candidate {
    std::string name;
    std::string path;  // on the server
    nfs::client::Attributes attributes;
  };
  // Whether all hold that attributes tell, which is all but whether a directory is empty.
  bool hold_for(const Candidate& candidate) const;
  // Whether directories must be empty, or must not be; nullopt when either will do.
  std::optional<bool> emptiness() const { return emptiness_; }

 private:
  using Test = std::function<bool(const Candidate&)>;
  struct Given {
    std::string option;
    std::string value;
    bool negated = false;
  };
  std::optional<std::string> understand_one(const Given& given, const nfs::client::Time& now);
  void keep(bool negated, Test test);
  // Declares an option with a value.
  void take(Arguments& arguments, const std::string& option, const std::string& placeholder,
            const std::string& help);

  std::vector<Given> given_;
  bool negate_next_ = false;
  std::vector<Test> tests_;
  std::optional<bool> emptiness_;
};

}  // namespace stag::cli
