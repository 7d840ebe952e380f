#include "nfs/export/file_handle.h"

#include <gtest/gtest.h>

#include <vector>

#include "nfs/export/state/server_state.h"

namespace stag::nfs {
namespace {

const FileHandles kHandles(ServerState::ephemeral(1).handle_key);

vfs::Handle object_of(std::string_view text) {
  return *vfs::Handle::from(bytes_of(text));
}
std::vector<std::byte> copy_of(const FileHandles::Sealed& sealed) {
  return {sealed.bytes().begin(), sealed.bytes().end()};
}

TEST(FileHandle, names_its_export_and_object) {
  for (const std::size_t length : {0, 1, 16, 40}) {
    const vfs::Handle object = object_of(std::string(length, 'h'));
    const auto sealed = kHandles.seal(0xfedcba98, object);
    EXPECT_EQ(sealed.size, 13 + length);
    const auto opened = kHandles.open(sealed.bytes());
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(opened->export_id, 0xfedcba98);
    EXPECT_EQ(opened->object, object);
  }
}

TEST(FileHandle, is_the_same_whenever_it_is_made) {
  const FileHandles restarted(ServerState::ephemeral(1).handle_key);
  EXPECT_EQ(copy_of(kHandles.seal(5, object_of("abc"))),
            copy_of(restarted.seal(5, object_of("abc"))));
}

TEST(FileHandle, is_refused_with_any_bit_changed) {
  const auto good = copy_of(kHandles.seal(77, object_of("sixteen bytes...")));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(kHandles.open(bad).has_value()) << "bit " << bit;
  }
}

TEST(FileHandle, is_refused_when_cut_or_extended) {
  auto handle = copy_of(kHandles.seal(77, object_of("sixteen bytes...")));
  for (std::size_t length = 0; length < handle.size(); ++length)
    EXPECT_FALSE(kHandles.open(Bytes(handle).first(length)).has_value());
  while (handle.size() < FileHandles::kMaxSize) {
    handle.push_back(std::byte{0});
    EXPECT_FALSE(kHandles.open(handle).has_value());
  }
}

TEST(FileHandle, is_refused_by_a_server_with_another_key) {
  const FileHandles other(ServerState::ephemeral(2).handle_key);
  EXPECT_FALSE(other.open(kHandles.seal(77, object_of("x")).bytes()).has_value());
}

// A thread computes the MAC of a handle only once and then recognizes the handle, but no other.
TEST(FileHandle, is_opened_again_only_as_it_was_and_by_the_same_key) {
  const FileHandles other(ServerState::ephemeral(2).handle_key);
  for (const std::size_t length : {0, 3, 16, 40}) {
    const vfs::Handle object = object_of(std::string(length, 'h'));
    const auto good = copy_of(kHandles.seal(77, object));
    for (int i = 0; i < 3; ++i) {
      const auto opened = kHandles.open(good);
      ASSERT_TRUE(opened.has_value());
      EXPECT_EQ(opened->export_id, 77u);
      EXPECT_EQ(opened->object, object);
      EXPECT_FALSE(other.open(good).has_value());
    }
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      auto bad = good;
      bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_FALSE(kHandles.open(bad).has_value()) << "bit " << bit;
    }
    for (std::size_t cut = 0; cut < good.size(); ++cut) {
      EXPECT_FALSE(kHandles.open(Bytes(good).first(cut)).has_value()) << cut;
      EXPECT_FALSE(kHandles.open(Bytes(good).subspan(good.size() - cut)).has_value()) << cut;
    }
  }
}

TEST(FileHandle, is_opened_whichever_others_were_before) {
  std::vector<std::vector<std::byte>> handles;
  for (int i = 0; i < 1000; ++i)
    handles.push_back(copy_of(kHandles.seal(7, object_of(std::to_string(i)))));
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 1000; ++i) {
      const auto opened = kHandles.open(handles[i]);
      ASSERT_TRUE(opened.has_value());
      EXPECT_EQ(opened->object, object_of(std::to_string(i)));
    }
}

TEST(FileHandle, gives_each_export_path_its_own_lasting_id) {
  EXPECT_EQ(kHandles.export_id("/a"),
            FileHandles(ServerState::ephemeral(1).handle_key).export_id("/a"));
  EXPECT_NE(kHandles.export_id("/a"), kHandles.export_id("/b"));
}

TEST(FileHandle2, has_32_bytes_whatever_the_length_of_the_store_handle) {
  for (const std::size_t length : {0, 1, 10, 18, 19}) {
    const vfs::Handle object = object_of(std::string(length, 'h'));
    const auto sealed = kHandles.seal2(0xfedcba98, object);
    ASSERT_TRUE(sealed.has_value());
    const auto opened = kHandles.open(*sealed);
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(opened->export_id, 0xfedcba98);
    EXPECT_EQ(opened->object, object);
  }
  EXPECT_FALSE(kHandles.seal2(1, object_of(std::string(20, 'h'))).has_value());
}

TEST(FileHandle2, is_refused_with_any_bit_changed) {
  const auto good = *kHandles.seal2(77, object_of("sixteen bytes..."));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(kHandles.open(bad).has_value()) << bit;
  }
  EXPECT_FALSE(kHandles.open(Bytes(good).first(31)).has_value());
}

}  // namespace
}  // namespace stag::nfs
