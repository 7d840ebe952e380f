// Where in the name space of version 4 the exports are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>

#include "cli/support/format.h"
#include "cli/support/remote.h"

namespace stag::cli {
namespace {

using nfs::client::Entry;
using nfs::client::Error;
using nfs::client::FileSystem;
using nfs::client::FileType;
using nfs::client::Handle;
using nfs::client::Listing;
using nfs::client::Node;
using nfs::client::Status;

// Exports that a sentence names, and directories that are read for them, at most.
constexpr std::size_t kNamed = 8;
constexpr std::size_t kRead = 32;
constexpr std::uint64_t kMostEntries = 4096;

// The paths of the exports, if the root is none itself: then there are only directories outside of
// them, and each leads to one. nullopt: the root is an export, or that is not known.
class Exports {
 public:
  explicit Exports(FileSystem& files) : files_(files) {}

  Task<std::optional<std::vector<std::string>>> find() {
    const Outcome<Node> root = co_await files_.walk("");
    if (!root) co_return std::nullopt;
    id_ = root->attributes.file_system_id;
    left_.emplace_back("", root->handle);
    for (std::size_t read = 0; !left_.empty() && read < kRead; ++read) {
      const auto [path, handle] = std::move(left_.front());
      left_.pop_front();
      const bool leads_on = co_await look(path, handle);
      if (!leads_on) co_return std::nullopt;
    }
    if (found_.empty()) co_return std::nullopt;
    co_return std::move(found_);
  }

 private:
  // False: what is in `handle` is not what leads to exports.
  Task<bool> look(std::string path, Handle handle) {
    Listing listing = files_.list(handle, Listing::Detail::Attributes, kMostEntries);
    for (;;) {
      const Outcome<std::vector<Entry>> batch = co_await listing.next();
      if (!batch) co_return false;
      if (batch->empty()) co_return true;
      for (const Entry& entry : *batch) {
        if (!entry.attributes || !entry.handle) co_return false;
        if (entry.attributes->type != FileType::Directory) co_return false;
        const std::string below = path + "/" + entry.name;
        if (entry.attributes->file_system_id != id_)
          found_.push_back(below);
        else
          left_.emplace_back(below, *entry.handle);
      }
    }
  }

  FileSystem& files_;
  std::uint64_t id_ = 0;  // of the file system of the root
  std::deque<std::pair<std::string, Handle>> left_;
  std::vector<std::string> found_;
};

}  // namespace

Task<std::string> Remote::outside_exports() {
  if (url().version != 4 || files().root_path() != "/") co_return "";
  const std::optional<std::vector<std::string>> found = co_await Exports(files()).find();
  if (!found) co_return "";
  std::vector<std::string> named;
  for (const std::string& path : *found)
    if (named.size() < kNamed) named.push_back(shown(path));
  co_return fmt::format("'{}' is in no export; there {} {}{}", shown(url().path),
                        found->size() == 1 ? "is" : "are", fmt::join(named, ", "),
                        named.size() < found->size() ? " and more" : "");
}

Task<Error> Remote::explained_by_exports(Error error) {
  if (!error.is(Status::ReadOnly) && !error.is(Status::NoEntry)) co_return error;
  std::string outside = co_await outside_exports();
  if (!outside.empty()) error.sentence = std::move(outside);
  co_return error;
}

}  // namespace stag::cli
