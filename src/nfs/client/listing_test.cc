#include "nfs/client/listing.h"

#include <set>

#include "testing/nfs/client_harness.h"
#include "testing/vfs/awaited.h"

namespace stag::nfs::client {
namespace {

class ClientListing : public ClientTest {
 protected:
  // Straight into the store: making many files is not what is tested.
  void fill(int count) {
    const vfs::Credentials root{0, 0, {}};
    const vfs::CallerContext caller{loop_, root};
    const vfs::Handle top = store_->root();
    for (int i = 0; i < count; ++i)
      STAG_CHECK(
          run(testing::awaited(store_->create(caller, top, "entry " + std::to_string(i), {})))
              .ok());
  }
  std::vector<Entry> all(Listing::Detail detail) {
    std::vector<Entry> entries;
    Listing listing = files().list(files().root(), detail);
    for (;;) {
      std::vector<Entry> batch = must(listing.next());
      if (batch.empty()) return entries;
      ++batches_;
      for (Entry& entry : batch) entries.push_back(std::move(entry));
    }
  }
  int batches_ = 0;
};

std::set<std::string> names_of(const std::vector<Entry>& entries) {
  std::set<std::string> names;
  for (const Entry& entry : entries) names.insert(entry.name);
  return names;
}

TEST_F(ClientListing, has_no_entries_of_an_empty_directory) {
  EXPECT_TRUE(all(Listing::Detail::Attributes).empty());
  EXPECT_TRUE(all(Listing::Detail::Names).empty());
}

TEST_F(ClientListing, lists_a_hundred_thousand_names_once_each_in_batches) {
  constexpr int kCount = 100'000;
  fill(kCount);
  const std::vector<Entry> entries = all(Listing::Detail::Names);
  EXPECT_EQ(entries.size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(names_of(entries).size(), static_cast<std::size_t>(kCount));
  EXPECT_GT(batches_, 10);
}

TEST_F(ClientListing, yields_attributes_and_handles) {
  fill(3000);
  const Handle file = made_file("with data", "12345");
  const std::vector<Entry> entries = all(Listing::Detail::Attributes);
  EXPECT_EQ(names_of(entries).size(), 3001u);
  for (const Entry& entry : entries) {
    ASSERT_TRUE(entry.attributes && entry.handle) << entry.name;
    EXPECT_EQ(entry.attributes->file_id, entry.file_id);
    if (entry.name != "with data") continue;
    EXPECT_EQ(entry.attributes->size, 5u);
    EXPECT_EQ(*entry.handle, file);
  }
}

TEST_F(ClientListing, fails_for_an_object_that_is_no_directory) {
  Listing listing = files().list(made_file("f"));
  EXPECT_EQ(status(listing.next()), Status::NotDirectory);
}

template <class Res>
void give(Res& res, std::initializer_list<const char*> names, bool eof) {
  std::uint64_t cookie = 0;
  for (const char* name : names) {
    auto& entry = res.resok().reply.entries.emplace_back();
    entry.name = name;
    entry.cookie = ++cookie;
  }
  res.resok().reply.eof = eof;
}

TEST(ClientListingFaults, falls_back_to_READDIR_where_there_is_no_READDIRPLUS) {
  Scripted world;
  world.on<v3::NFSPROC3_READDIRPLUS>([](const auto&, v3::READDIRPLUS3res& res) {
    res.status = v3::NFS3ERR_NOTSUPP;
    res.resfail() = {};
  });
  world.on<v3::NFSPROC3_READDIR>([](const auto&, v3::READDIR3res& res) {
    give(res, {".", "..", "one"}, true);
  });
  Listing listing = world.files.list(world.files.root());
  const auto batch = world.run(listing.next());
  ASSERT_TRUE(batch.ok()) << batch.error().sentence;
  ASSERT_EQ(batch->size(), 1u);
  EXPECT_EQ((*batch)[0].name, "one");
  EXPECT_TRUE(world.run(listing.next())->empty());
}

TEST(ClientListingFaults, asks_for_more_when_the_server_calls_the_size_too_small) {
  Scripted world;
  std::vector<std::uint32_t> sizes;
  world.on<v3::NFSPROC3_READDIR>([&](const v3::READDIR3args& args, v3::READDIR3res& res) {
    sizes.push_back(args.count);
    if (args.count >= 400'000) return give(res, {"one"}, true);
    res.status = v3::NFS3ERR_TOOSMALL;
    res.resfail() = {};
  });
  Listing listing = world.files.list(world.files.root(), Listing::Detail::Names);
  EXPECT_EQ(world.run(listing.next())->size(), 1u);
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{131072, 262144, 524288}));
}

TEST(ClientListingFaults, gives_up_on_a_server_that_always_wants_more) {
  Scripted world;
  world.on<v3::NFSPROC3_READDIR>([](const auto&, v3::READDIR3res& res) {
    res.status = v3::NFS3ERR_TOOSMALL;
    res.resfail() = {};
  });
  Listing listing = world.files.list(world.files.root(), Listing::Detail::Names);
  EXPECT_TRUE(world.run(listing.next()).error().is(Status::TooSmall));
}

TEST(ClientListingFaults, passes_on_the_cookie_and_the_verifier_of_the_last_batch) {
  Scripted world;
  world.on<v3::NFSPROC3_READDIR>([&](const v3::READDIR3args& args, v3::READDIR3res& res) {
    if (args.cookie == 0) {
      EXPECT_EQ(args.cookieverf, v3::cookieverf3{});
      res.resok().cookieverf[3] = std::byte{9};
      return give(res, {".", ".."}, false);
    }
    EXPECT_EQ(args.cookie, 2u);
    EXPECT_EQ(args.cookieverf[3], std::byte{9});
    give(res, {"last"}, true);
  });
  Listing listing = world.files.list(world.files.root(), Listing::Detail::Names);
  EXPECT_EQ(world.run(listing.next())->at(0).name, "last");
}

TEST(ClientListingFaults, does_not_let_a_server_turn_in_circles) {
  for (const bool empty : {true, false}) {
    Scripted world;
    world.on<v3::NFSPROC3_READDIR>([empty](const auto&, v3::READDIR3res& res) {
      if (empty)
        give(res, {}, false);
      else
        give(res, {"again"}, false);
    });
    Listing listing = world.files.list(world.files.root(), Listing::Detail::Names);
    std::optional<Error> ended;
    for (int i = 0; i < 3 && !ended; ++i) {
      const auto batch = world.run(listing.next());
      if (!batch) ended = batch.error();
    }
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->kind, Error::Kind::Protocol);
  }
}

TEST(ClientListingFaults, finds_circles_of_every_length) {
  for (const std::uint64_t length : {2, 3, 7, 100}) {
    Scripted world;
    std::uint64_t batches = 0;
    world.on<v3::NFSPROC3_READDIR>([&](const auto&, v3::READDIR3res& res) {
      give(res, {"first", "second"}, false);
      ++batches;
      res.resok().reply.entries[0].cookie = 1000 + batches % length;
      res.resok().reply.entries[1].cookie = 2000 + batches % length;
    });
    Listing listing = world.files.list(world.files.root(), Listing::Detail::Names);
    std::optional<Error> ended;
    for (int i = 0; i < 1000 && !ended; ++i) {
      const auto batch = world.run(listing.next());
      if (!batch) ended = batch.error();
    }
    ASSERT_TRUE(ended.has_value()) << length;
    EXPECT_NE(ended->sentence.find("circles"), std::string::npos) << ended->sentence;
  }
}

TEST(ClientListingFaults, takes_neighbours_with_one_cookie_for_no_circle) {
  Scripted world;
  world.on<v3::NFSPROC3_READDIR>([](const auto&, v3::READDIR3res& res) {
    give(res, {"a", "b", "c", "d", "e"}, true);
    for (auto& entry : res.resok().reply.entries) entry.cookie = (entry.cookie + 1) / 2;
  });
  Listing listing = world.files.list(world.files.root(), Listing::Detail::Names);
  EXPECT_EQ(world.run(listing.next())->size(), 5u);
}

TEST(ClientListingFaults, ends_where_a_server_does_not) {
  for (const bool long_names : {false, true}) {
    Scripted world;
    world.on<v3::NFSPROC3_READDIR>([&](const v3::READDIR3args& args, v3::READDIR3res& res) {
      give(res, {"one", "two"}, false);
      for (auto& entry : res.resok().reply.entries) entry.cookie += args.cookie;
      if (long_names) res.resok().reply.entries[0].name = std::string(20'000, 'x');
    });
    Listing listing = world.files.list(world.files.root(), Listing::Detail::Names, 1000);
    std::size_t entries = 0;
    std::optional<Error> ended;
    while (entries < 2000 && !ended) {
      const auto batch = world.run(listing.next());
      if (!batch)
        ended = batch.error();
      else
        entries += batch->size();
    }
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->kind, Error::Kind::Protocol);
    EXPECT_NE(ended->sentence.find("more than 1000 entries"), std::string::npos) << ended->sentence;
    EXPECT_LE(entries, long_names ? 30u : 1000u);
  }
}

TEST(ClientListingFaults, refuses_names_that_would_lead_elsewhere) {
  for (const char* name : {"../../etc/passwd", "/etc", ""}) {
    Scripted world;
    world.on<v3::NFSPROC3_READDIR>(
        [name](const auto&, v3::READDIR3res& res) { give(res, {name}, true); });
    Listing listing = world.files.list(world.files.root(), Listing::Detail::Names);
    const auto batch = world.run(listing.next());
    ASSERT_FALSE(batch.ok()) << name;
    EXPECT_EQ(batch.error().kind, Error::Kind::Protocol);
  }
}

}  // namespace
}  // namespace stag::nfs::client
