// Where files were found, while names come, go and move.
#include "nfs/client/v4/places.h"

#include <gtest/gtest.h>

namespace stag::nfs::client::nfs4 {
namespace {

Handle placed(std::string_view name) {
  return *Handle::from(bytes_of(name));
}
std::string where(Places& places, std::string_view file) {
  const auto place = places.find(placed(file));
  return place ? std::string(text_of(place->directory.bytes())) + "/" + place->name : "";
}

TEST(Places, know_a_file_by_the_name_it_was_found_by_last) {
  Places places;
  EXPECT_EQ(where(places, "file"), "");
  places.put(placed("file"), placed("dir"), "first");
  places.put(placed("file"), placed("dir"), "first");
  EXPECT_EQ(where(places, "file"), "dir/first");
  places.put(placed("file"), placed("dir"), "second");
  EXPECT_EQ(where(places, "file"), "dir/second");
  EXPECT_EQ(places.size(), 1u);
}

TEST(Places, forget_a_name_that_is_another_files_or_nobodys) {
  Places places;
  places.put(placed("file"), placed("dir"), "name");
  places.put(placed("other"), placed("dir"), "name");
  EXPECT_EQ(where(places, "file"), "");
  EXPECT_EQ(where(places, "other"), "dir/name");
  places.remove(placed("dir"), "name");
  places.remove(placed("dir"), "name");
  EXPECT_EQ(where(places, "other"), "");
  EXPECT_EQ(places.size(), 0u);
}

TEST(Places, follow_a_file_that_is_renamed) {
  Places places;
  places.put(placed("file"), placed("dir"), "name");
  places.put(placed("other"), placed("else"), "taken");
  places.rename(placed("dir"), "name", placed("else"), "taken");
  EXPECT_EQ(where(places, "file"), "else/taken");
  EXPECT_EQ(where(places, "other"), "");
  places.rename(placed("dir"), "unknown", placed("else"), "taken");
  EXPECT_EQ(where(places, "file"), "") << "what had the name is gone";
}

TEST(Places, keep_directories_and_names_apart) {
  Places places;
  places.put(placed("1"), placed("ab"), "c");
  places.put(placed("2"), placed("a"), "bc");
  EXPECT_EQ(where(places, "1"), "ab/c");
  EXPECT_EQ(where(places, "2"), "a/bc");
}

TEST(Places, are_those_that_were_used_last) {
  Places places;
  places.put(placed("kept"), placed("dir"), "kept");
  for (std::size_t i = 0; i + 1 < Places::kMost; ++i)
    places.put(placed(std::to_string(i)), placed("dir"), std::to_string(i));
  EXPECT_EQ(where(places, "kept"), "dir/kept");
  places.put(placed("new"), placed("dir"), "new");
  EXPECT_EQ(places.size(), Places::kMost);
  EXPECT_EQ(where(places, "kept"), "dir/kept");
  EXPECT_EQ(where(places, "0"), "");
}

}  // namespace
}  // namespace stag::nfs::client::nfs4
