// The cases of one minor version of NFSv4, run in a folder of the server.
#pragma once

#include <functional>
#include <memory>

#include "conform/nfs4/script.h"

namespace stag::conform::nfs4 {

struct SuiteOptions {
  std::uint32_t minor = 1;
  std::vector<std::string> path{};  // of the folder to work in, from the server's root
  rpc::Credentials credentials{};
  Duration timeout = std::chrono::seconds(10);
  std::string label{};  // unique: the name of the client and of the folder that is made
  // Serves the reverse direction of the Channel.
  Callbacks* callbacks = nullptr;
  // Both as in ClientOptions.
  MakeCallbackPlace make_place{};
  std::function<void(std::chrono::seconds left)> on_wait{};
};

// `channel` and the callbacks outlive it; null: the cases are only looked at.
std::unique_ptr<conform::Suite> make_suite(rpc::Channel* channel, SuiteOptions options,
                                           CancelToken cancel);

}  // namespace stag::conform::nfs4
