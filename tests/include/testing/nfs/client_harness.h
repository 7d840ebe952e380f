// What the client's tests stand on: a real server on a memory store, and a server that does what a
// test tells it, both called in-process through whole RPC messages in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nfs/client/file_system.h"
#include "rpc/server.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "testing/nfs/server_fixture.h"
#include "testing/proves.h"

namespace stag::nfs::client {

inline Handle handle_of(std::string_view name) {
  return *Handle::from(bytes_of(name));
}

inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return text;
}
inline MutableBytes writable(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

// Runs `task` in virtual time; it must end.
template <class T>
T run_on(testing::ManualLoop& loop, Task<T> task) {
  std::optional<T> result = loop.run(std::move(task));
  STAG_CHECK(result.has_value());
  return *std::move(result);
}

// Whether `task` ends because there is no memory.
template <class T>
Task<bool> runs_out_of_memory(Task<T> task) {
  try {
    static_cast<void>(co_await std::move(task));
  } catch (const std::bad_alloc&) {
    co_return true;
  }
  co_return false;
}

// A client of nfs/server; /data is served from memory.
class ClientTest : public testing::NfsServerTest {
 protected:
  ClientTest() { options_.calls.credentials = rpc::Credentials::sys("tests", 0, 0); }

  FileSystem& files() {
    if (!files_)
      files_ = std::make_unique<FileSystem>(channel_, *Handle::from(root().data.bytes()), "/data",
                                            options_);
    return *files_;
  }
  template <class T>
  T run(Task<T> task) {
    return run_on(loop_, std::move(task));
  }
  // The value, which there must be.
  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    return outcome ? std::move(*outcome) : T{};
  }
  // The error, which there must be.
  template <class T>
  Error error(Task<Outcome<T>> task) {
    const Outcome<T> outcome = run(std::move(task));
    if (!outcome) return outcome.error();
    ADD_FAILURE() << "it succeeded";
    return {};
  }
  template <class T>
  Status status(Task<Outcome<T>> task) {
    const Error failed = error(std::move(task));
    EXPECT_EQ(failed.kind, Error::Kind::Nfs) << failed.sentence;
    return failed.status;
  }
  Handle made_file(const std::string& name, std::string_view content = {}) {
    const Node node = must(files().create(files().root(), name, {.mode = 0644}));
    if (!content.empty()) {
      EXPECT_EQ(must(files().write_from(node.handle, 0, bytes_of(content))), content.size());
    }
    return node.handle;
  }
  std::string content(const Handle& file, std::size_t size) {
    std::string text(size, '?');
    text.resize(must(files().read_into(file, 0, writable(text))));
    return text;
  }

  FileSystemOptions options_;

 private:
  std::unique_ptr<FileSystem> files_;
};

// A client of handlers that the test adds to `server`.
struct Scripted {
  explicit Scripted(FileSystemOptions options = {})
      : files(channel, handle_of("root"), "/data", options) {}

  template <class T>
  T run(Task<T> task) {
    return run_on(loop, std::move(task));
  }
  template <class P, class F>
  void on(F handler) {
    server.add<P>([handler](rpc::CallContext& call, typename P::Args args) {
      return answered<P>(call, args, handler);
    });
  }

  testing::ManualLoop loop;
  rpc::Server server;
  testing::LoopbackChannel channel{loop, server};
  FileSystem files;

 private:
  // Later, so that calls overlap.
  template <class P, class F>
  static Task<typename P::Results> answered(rpc::CallContext& call, typename P::Args args,
                                            F handler) {
    co_await sleep_for(call.loop(), std::chrono::milliseconds(1));
    typename P::Results results{};
    handler(args, results);
    co_return results;
  }
};

}  // namespace stag::nfs::client
