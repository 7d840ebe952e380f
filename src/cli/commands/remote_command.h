// A command that performs one operation on each of its URLs, one after the other.
#pragma once

#include <string>
#include <vector>

#include "cli/support/arguments.h"
#include "cli/support/remote.h"

namespace stag::cli {

class RemoteCommand : public Command {
 public:
  Exit run() override;

 protected:
  // Called by declare().
  void declare_urls(Arguments& arguments, const std::string& help);
  // A failure is reported with the URL, and the command goes on with the next URL.
  virtual Task<Outcome<Ok>> act(Run& run, Remote& remote) = 0;
  // After the last one.
  virtual void finish() {}
  // Opens the server of `url` and acts.
  virtual Task<Outcome<Ok>> one(Run& run, std::string url);

  // The directory that `place` is in.
  static Task<Outcome<nfs::client::Handle>> parent_of(Remote& remote, Place place);
  const std::vector<std::string>& urls() const { return urls_; }
  RemoteOptions& remote() { return remote_; }

 private:
  Task<Exit> all(Run& run);

  RemoteOptions remote_;
  std::vector<std::string> urls_;
};

}  // namespace stag::cli
