// A FileSystem in front of another one whose operations can be made to fail, and which can claim to
// have lost data.
#pragma once

#include <memory>
#include <optional>

#include "vfs/vfs.h"

namespace stag::testing {

class FaultyStore : public vfs::FileSystem {
 public:
  explicit FaultyStore(std::shared_ptr<vfs::FileSystem> inner) : inner_(std::move(inner)) {}

  // What every operation but attributes() answers while it is set.
  std::optional<vfs::Status> fault;
  std::uint64_t lost = 0;

  vfs::Handle root() const override { return inner_->root(); }
  vfs::Limits limits() const override { return inner_->limits(); }
  std::uint64_t losses() const override { return lost; }

  vfs::Operation<vfs::Attributes> attributes(vfs::Caller who, const vfs::Handle& object) override {
    return inner_->attributes(who, object);
  }
  vfs::Operation<vfs::Change> set_attributes(vfs::Caller who, const vfs::Handle& object,
                                             const vfs::SetAttributes& changes,
                                             std::optional<vfs::Time> guard) override {
    return or_fault([&] { return inner_->set_attributes(who, object, changes, guard); });
  }
  vfs::Operation<vfs::Found> lookup(vfs::Caller who, const vfs::Handle& directory,
                                    std::string_view name) override {
    return or_fault([&] { return inner_->lookup(who, directory, name); });
  }
  vfs::Operation<vfs::Access> access(vfs::Caller who, const vfs::Handle& object,
                                     std::uint32_t asked) override {
    return or_fault([&] { return inner_->access(who, object, asked); });
  }
  vfs::Operation<vfs::Link> readlink(vfs::Caller who, const vfs::Handle& symlink) override {
    return or_fault([&] { return inner_->readlink(who, symlink); });
  }
  vfs::Operation<vfs::ReadResult> read(vfs::Caller who, const vfs::Handle& file,
                                       std::uint64_t offset, std::uint32_t count) override {
    return or_fault([&] { return inner_->read(who, file, offset, count); });
  }
  vfs::Operation<vfs::WriteResult> write(vfs::Caller who, const vfs::Handle& file,
                                         std::uint64_t offset, Rope data,
                                         vfs::Stability stability) override {
    return or_fault([&] { return inner_->write(who, file, offset, std::move(data), stability); });
  }
  vfs::Operation<vfs::Change> commit(vfs::Caller who, const vfs::Handle& file, std::uint64_t offset,
                                     std::uint32_t count) override {
    return or_fault([&] { return inner_->commit(who, file, offset, count); });
  }
  vfs::Operation<vfs::Created> create(vfs::Caller who, const vfs::Handle& directory,
                                      std::string_view name, const vfs::CreateHow& how) override {
    return or_fault([&] { return inner_->create(who, directory, name, how); });
  }
  vfs::Operation<vfs::Created> mkdir(vfs::Caller who, const vfs::Handle& directory,
                                     std::string_view name,
                                     const vfs::SetAttributes& attributes) override {
    return or_fault([&] { return inner_->mkdir(who, directory, name, attributes); });
  }
  vfs::Operation<vfs::Created> symlink(vfs::Caller who, const vfs::Handle& directory,
                                       std::string_view name, std::string_view target,
                                       const vfs::SetAttributes& attributes) override {
    return or_fault([&] { return inner_->symlink(who, directory, name, target, attributes); });
  }
  vfs::Operation<vfs::Created> mknod(vfs::Caller who, const vfs::Handle& directory,
                                     std::string_view name, vfs::Special special,
                                     const vfs::SetAttributes& attributes) override {
    return or_fault([&] { return inner_->mknod(who, directory, name, special, attributes); });
  }
  vfs::Operation<vfs::Linked> link(vfs::Caller who, const vfs::Handle& file,
                                   const vfs::Handle& directory, std::string_view name) override {
    return or_fault([&] { return inner_->link(who, file, directory, name); });
  }
  vfs::Operation<vfs::Change> remove(vfs::Caller who, const vfs::Handle& directory,
                                     std::string_view name) override {
    return or_fault([&] { return inner_->remove(who, directory, name); });
  }
  vfs::Operation<vfs::Change> rmdir(vfs::Caller who, const vfs::Handle& directory,
                                    std::string_view name) override {
    return or_fault([&] { return inner_->rmdir(who, directory, name); });
  }
  vfs::Operation<vfs::Renamed> rename(vfs::Caller who, const vfs::Handle& from_directory,
                                      std::string_view from, const vfs::Handle& to_directory,
                                      std::string_view to) override {
    return or_fault([&] { return inner_->rename(who, from_directory, from, to_directory, to); });
  }
  vfs::Operation<vfs::Listed> list(vfs::Caller who, const vfs::Handle& directory,
                                   vfs::ListFrom from, vfs::DirectorySink& sink) override {
    return or_fault([&] { return inner_->list(who, directory, from, sink); });
  }
  vfs::Operation<vfs::Usage> usage(vfs::Caller who) override {
    return or_fault([&] { return inner_->usage(who); });
  }

 private:
  template <class Operate>
  auto or_fault(Operate operate) -> decltype(operate()) {
    if (fault) return Failure{*fault};
    return operate();
  }

  std::shared_ptr<vfs::FileSystem> inner_;
};

}  // namespace stag::testing
