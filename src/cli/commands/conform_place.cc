#include "cli/commands/conform_place.h"

#include <algorithm>
#include <deque>

namespace stag::cli {
namespace {

using nfs::client::Entry;
using nfs::client::FileType;
using nfs::client::Handle;
using nfs::client::Listing;
using nfs::client::Node;

using Path = std::vector<std::string>;

// The root may be an export itself, with all that is in it.
constexpr std::size_t kMostFolders = 256;
// Of one folder: a server may list without end.
constexpr std::size_t kMostNames = 4096;

class Search {
 public:
  Search(Remote& remote, std::string label) : remote_(remote), label_(std::move(label)) {}

  // Folders nearer to the root come first.
  Task<Outcome<std::optional<Path>>> search() {
    const Outcome<Node> root = co_await remote_.files().walk("");
    if (!root) co_return Failure{root.error()};
    const std::uint64_t above = root->attributes.file_system_id;
    waiting_.push_back({.names = {}, .handle = root->handle, .leads_on = true});
    for (std::size_t tried = 0; tried < kMostFolders && !waiting_.empty(); ++tried) {
      const Folder folder = std::move(waiting_.front());
      waiting_.pop_front();
      const Outcome<bool> usable = co_await takes_a_folder(folder.handle);
      if (!usable) co_return Failure{usable.error()};
      if (*usable) co_return std::optional<Path>(folder.names);
      if (folder.leads_on) co_await add_folders_of(folder, above);
    }
    co_return std::optional<Path>();
  }

 private:
  struct Folder {
    Path names{};
    Handle handle{};
    bool leads_on = false;  // to exports, rather than being one
  };

  Task<Outcome<bool>> takes_a_folder(Handle folder) {
    nfs::client::FileSystem& files = remote_.settling();
    const Outcome<Node> made = co_await files.mkdir(folder, label_, {.mode = 0700});
    if (!made && made.error().kind == nfs::client::Error::Kind::Nfs) co_return false;
    if (!made) co_return Failure{made.error()};
    const Outcome<Ok> removed = co_await files.rmdir(folder, label_);
    if (!removed) co_return Failure{removed.error()};
    co_return true;
  }

  // What cannot be listed leads nowhere.
  Task<void> add_folders_of(const Folder& folder, std::uint64_t above) {
    Listing listing = remote_.files().list(folder.handle, Listing::Detail::Names, kMostFolders);
    std::vector<std::string> names;
    while (names.size() < kMostNames) {
      Outcome<std::vector<Entry>> batch = co_await listing.next();
      if (!batch || batch->empty()) break;
      for (Entry& entry : *batch) names.push_back(std::move(entry.name));
    }
    std::ranges::sort(names);
    for (const std::string& name : names) {
      if (waiting_.size() >= kMostFolders) co_return;
      const Outcome<Node> found = co_await remote_.files().lookup(folder.handle, name);
      if (!found || found->attributes.type != FileType::Directory) continue;
      Folder below{.names = folder.names,
                   .handle = found->handle,
                   .leads_on = found->attributes.file_system_id == above};
      below.names.push_back(name);
      waiting_.push_back(std::move(below));
    }
  }

  Remote& remote_;
  const std::string label_;
  std::deque<Folder> waiting_;
};

}  // namespace

Task<Outcome<std::optional<Path>>> place_to_work(Run& run, std::string url,
                                                 const RemoteOptions& options, std::string label) {
  const Outcome<nfs::client::Url> known = nfs::client::Url::parse(url);
  if (known && !known->version)
    url += (url.find('?') == std::string::npos ? "?" : "&") + std::string("version=4");
  const Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, url, options);
  if (!remote) co_return Failure{remote.error()};
  Search search(**remote, std::move(label));
  Outcome<std::optional<Path>> found = co_await search.search();
  co_await (*remote)->close();
  co_return found;
}

}  // namespace stag::cli
