#include "conform/nfs4/fixtures.h"

#include <fmt/format.h>

#include "base/pause.h"

namespace stag::conform::nfs4 {
namespace {

// Longer than any usual grace period: 90 s.
constexpr int kGraceSeconds = 120;
constexpr std::uint32_t kListing = 32 << 10;
constexpr int kStaleTries = 50;
constexpr auto kStalePause = std::chrono::milliseconds(100);

Steps made(v4::nfs_ftype4 type, const std::string& name, std::uint32_t mode) {
  return {at("work"), create(name, type, mode_is(mode)), getfh(name)};
}

Steps opened_file(const std::string& folder, const std::string& name, std::uint32_t mode = 0644) {
  return {at(folder), open({.name = name, .create = v4::UNCHECKED4, .attributes = mode_is(mode)})};
}

// Waits for the end of the server's grace period, if there is one; some have another for locks.
Task<std::string> outside_grace(Scene& scene, Steps steps) {
  std::string trouble;
  for (int i = 0; i < kGraceSeconds; ++i) {
    trouble = co_await prepare(scene, steps);
    if (!trouble.ends_with("NFS4ERR_GRACE") || scene.client.options().cancel.cancelled()) break;
    co_await pause(scene.client.channel().loop(), std::chrono::seconds(1),
                   scene.client.options().cancel);
  }
  co_return trouble;
}

// A server may know a file that was removed for a moment more, until it has closed what it had open
// of it itself (knfsd); the cases are about one that it knows no longer.
Task<void> until_stale(Scene& scene, const std::string& name) {
  Steps asking;
  asking.push_back(at(name));
  asking.push_back(getattr(bits({kType})));
  for (int i = 0; i < kStaleTries; ++i) {
    const Reply reply = co_await send(scene, asking);
    if (!reply.ok() || scene.client.options().cancel.cancelled()) co_return;
    co_await pause(scene.client.channel().loop(), kStalePause, scene.client.options().cancel);
  }
}

Task<std::string> make_objects(Scene& scene) {
  std::string trouble = co_await outside_grace(scene, opened_file("work", "file"));
  Steps locking;
  locking.push_back(at("file"));
  locking.push_back(lock({.open = "file", .held = "first lock"}));
  if (trouble.empty()) trouble = co_await outside_grace(scene, std::move(locking));
  const std::vector<Steps> compounds{
      {at("file"), write("file", 0, std::string(kContent))},
      made(v4::NF4DIR, "dir", 0755),
      made(v4::NF4DIR, "full", 0755),
      made(v4::NF4LNK, "link", 0777),
      made(v4::NF4FIFO, "fifo", 0644),
      made(v4::NF4DIR, "private", 0700),
      opened_file("work", "secret", 0600),
      opened_file("work", "gone"),
      opened_file("full", "inner"),
      {at("work"), create("gone folder", v4::NF4DIR), getfh("gone folder")},
      {at("work"), remove("gone folder")},
  };
  for (const Steps& steps : compounds) {
    if (!trouble.empty()) co_return trouble;
    trouble = co_await prepare(scene, steps);
  }
  if (!trouble.empty()) co_return trouble;
  co_await tidy(scene);
  Steps removal;
  removal.push_back(at("work"));
  removal.push_back(remove("gone"));
  trouble = co_await prepare(scene, removal);
  if (trouble.empty()) co_await until_stale(scene, "gone");
  co_return trouble;
}

struct Listed {
  std::vector<std::string> names{};
  bool complete = false;
};

Task<Listed> names_in(Scene& scene) {
  Steps steps;
  steps.push_back(at("folder"));
  Listing listing;
  listing.dircount = listing.maxcount = kListing;
  steps.push_back(readdir(listing));
  Listed listed;
  const Reply reply = co_await send(scene, steps);
  if (!reply.ok()) co_return listed;
  const v4::dirlist4& list = reply.results.resarray.back().opreaddir().resok4().reply;
  for (const v4::entry4& entry : list.entries) listed.names.push_back(entry.name);
  listed.complete = list.eof;
  co_return listed;
}

// Removes what is in "folder", which is removed itself from its parent by the caller.
Task<std::string> empty_folder(Scene& scene, int depth) {
  const v4::nfs_fh4 folder = scene.handles["folder"];
  std::string first;  // of the listing before
  for (;;) {
    scene.handles["folder"] = folder;
    const Listed listed = co_await names_in(scene);
    if (listed.names.empty())
      co_return listed.complete ? std::string() : std::string("it cannot be listed");
    if (listed.names.front() == first)
      co_return fmt::format("the server says that '{}' was removed, and it is still there", first);
    first = listed.names.front();
    for (const std::string& name : listed.names) {
      scene.handles["folder"] = folder;
      Steps removal;
      removal.push_back(at("folder"));
      removal.push_back(remove(name));
      Reply reply = co_await send(scene, removal);
      if (reply.answered() && reply.results.status == v4::NFS4ERR_NOTEMPTY && depth > 0) {
        Steps entering;
        entering.push_back(at("folder"));
        entering.push_back(lookup(name));
        entering.push_back(getfh("folder"));
        co_await send(scene, entering);
        co_await empty_folder(scene, depth - 1);
        scene.handles["folder"] = folder;
        reply = co_await send(scene, removal);
      }
      if (!reply.ok()) co_return fmt::format("'{}': {}", name, reply.text());
    }
  }
}

}  // namespace

Task<std::string> make_fixtures(Client& client, const SuiteOptions& options, Handles& handles) {
  Scene scene(client, handles, options.label + " fixtures");
  Steps way;
  way.push_back(putrootfh());
  way.push_back(getfh("root"));
  for (const std::string& name : options.path) way.push_back(lookup(name));
  way.push_back(getfh("folder"));
  std::string trouble = co_await prepare(scene, way);
  if (!trouble.empty()) co_return "the folder to work in is not there: " + trouble;
  Steps making;
  making.push_back(at("folder"));
  making.push_back(create(options.label, v4::NF4DIR));
  making.push_back(getfh("work"));
  trouble = co_await prepare(scene, making);
  handles = scene.handles;
  if (!trouble.empty()) co_return "no folder can be made there: " + trouble;
  trouble = co_await make_objects(scene);
  handles = scene.handles;
  co_return trouble.empty() ? trouble : "what the cases need cannot be made: " + trouble;
}

Task<std::string> make_own_folder(Scene& scene, std::string name) {
  Steps steps;
  steps.push_back(at("work"));
  steps.push_back(create(std::move(name), v4::NF4DIR));
  steps.push_back(getfh("own"));
  co_return co_await prepare(scene, steps);
}

Task<std::string> remove_fixtures(Client& client, const SuiteOptions& options,
                                  const Handles& handles) {
  Scene scene(client, handles, options.label + " removal");
  scene.handles["folder"] = scene.handle("work");
  constexpr int kDepth = 8;
  const std::string trouble = co_await empty_folder(scene, kDepth);
  if (!trouble.empty()) co_return trouble;
  Steps steps;
  steps.push_back(at("work"));
  steps.push_back(lookupp());
  steps.push_back(remove(options.label));
  const Reply reply = co_await send(scene, steps);
  co_return reply.ok() ? std::string() : reply.text();
}

}  // namespace stag::conform::nfs4
