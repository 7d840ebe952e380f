// Contract of every FileSystem, part 10: failures that come late. A SteppedStore in front of the
// store ends operations some turns of the loop after they were called, with an error: the caller
// gets that error once, the store keeps what it had, and other operations go on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/vfs/fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::vfs::testing {

// Every operation goes on some turns of its loop later. Those named by `fails` then end with Io, at
// that point. For one loop.
class LateFailingSteps final : public Steps {
 public:
  Task<std::optional<Status>> pass(Point point, Loop& loop) override {
    for (int left = 3; left > 0; --left) co_await resume_on(loop);
    if (!fails || !fails(point)) co_return std::nullopt;
    failed.push_back(point);
    co_return Status::Io;
  }
  std::function<bool(Point)> fails{};
  std::vector<Point> failed{};
};

class VfsFailureContract : public VfsContract {
 protected:
  struct Tried {
    std::string_view what;
    Called called;
    std::function<std::optional<Status>()> status;  // nullopt: it has succeeded
  };

  VfsFailureContract() {
    file = make_file("file").handle;
    write(file, 0, "12345");
    other = make_file("other").handle;
    make_directory(root(), "directory");
    symlink = good(fs().symlink(as(root_user), root(), "symlink", "text", {})).node.handle;
    // The backend owns the store.
    const std::shared_ptr<FileSystem> behind(std::shared_ptr<FileSystem>(), &fs());
    late = std::make_shared<SteppedStore>(behind, steps);
  }

  std::vector<Tried> all() {
    std::vector<Tried> tried = reading();
    for (Tried& each : changing()) tried.push_back(std::move(each));
    for (Tried& each : changing_names()) tried.push_back(std::move(each));
    for (Tried& each : of_newer_versions()) tried.push_back(std::move(each));
    return tried;
  }
  std::vector<Tried> reading() {
    const CallerContext who = as(root_user);
    return {
        {"attributes", Called::Attributes,
         [=, this] { return status(late->attributes(who, file)); }},
        {"lookup", Called::Lookup, [=, this] { return status(late->lookup(who, top, "file")); }},
        {"access", Called::Access,
         [=, this] { return status(late->access(who, file, access::kAll)); }},
        {"readlink", Called::Readlink, [=, this] { return status(late->readlink(who, symlink)); }},
        {"read", Called::Read, [=, this] { return status(late->read(who, file, 0, 5)); }},
        {"list", Called::List,
         [=, this] {
           Names names;
           const auto outcome = status(late->list(who, top, {}, names));
           EXPECT_EQ(names.names.empty(), outcome.has_value());
           return outcome;
         }},
        {"usage", Called::Usage, [=, this] { return status(late->usage(who)); }},
    };
  }
  std::vector<Tried> changing() {
    const CallerContext who = as(root_user);
    return {
        {"set_attributes", Called::SetAttributes,
         [=, this] {
           const SetAttributes changes = mode_of(0600);
           return status(late->set_attributes(who, file, changes, std::nullopt));
         }},
        {"write", Called::Write,
         [=, this] {
           return status(
               late->write(who, file, 2, Rope::copy_of(bytes_of("xxxxxx")), Stability::FileSync));
         }},
        {"commit", Called::Commit, [=, this] { return status(late->commit(who, file, 0, 0)); }},
    };
  }
  std::vector<Tried> changing_names() {
    const CallerContext who = as(root_user);
    return {
        {"create", Called::Create,
         [=, this] {
           const CreateHow how;
           return status(late->create(who, top, "new file", how));
         }},
        {"mkdir", Called::Mkdir,
         [=, this] {
           const SetAttributes attributes;
           return status(late->mkdir(who, top, "new directory", attributes));
         }},
        {"symlink", Called::Symlink,
         [=, this] {
           const SetAttributes attributes;
           return status(late->symlink(who, top, "new symlink", "text", attributes));
         }},
        {"mknod", Called::Mknod,
         [=, this] {
           const SetAttributes attributes;
           return status(late->mknod(who, top, "new fifo", {}, attributes));
         }},
        {"link", Called::Link,
         [=, this] { return status(late->link(who, file, top, "new link")); }},
        {"rename", Called::Rename,
         [=, this] { return status(late->rename(who, top, "file", top, "new name")); }},
        {"remove", Called::Remove, [=, this] { return status(late->remove(who, top, "other")); }},
        {"rmdir", Called::Rmdir, [=, this] { return status(late->rmdir(who, top, "directory")); }},
    };
  }
  // Those that a store may lack, on files and names that the others have left.
  std::vector<Tried> of_newer_versions() {
    const CallerContext who = as(root_user);
    return {
        {"acls", Called::Acls, [=, this] { return status(late->acls(who, file)); }},
        {"set_acls", Called::SetAcls,
         [=, this] {
           const SetAcls none;
           return status(late->set_acls(who, file, none));
         }},
        {"seek", Called::Seek,
         [=, this] { return status(late->seek(who, file, 0, SeekTo::Data)); }},
        {"allocate", Called::Allocate,
         [=, this] { return status(late->allocate(who, file, 0, 1 << 16)); }},
        {"deallocate", Called::Deallocate,
         [=, this] { return status(late->deallocate(who, file, 0, 1)); }},
        {"clone", Called::Clone,
         [=, this] {
           return status(late->clone(who, file, file, {0, 1 << 16, 1}));
         }},
        {"copy", Called::Copy,
         [=, this] {
           return status(late->copy(who, file, file, {0, 1 << 16, 1}));
         }},
        {"set_xattr", Called::SetXattr,
         [=, this] { return status(late->set_xattr(who, file, "x", "1", XattrMode::Create)); }},
        {"xattr", Called::Xattr, [=, this] { return status(late->xattr(who, file, "x")); }},
        {"list_xattrs", Called::ListXattrs,
         [=, this] { return status(late->list_xattrs(who, file)); }},
        {"remove_xattr", Called::RemoveXattr,
         [=, this] { return status(late->remove_xattr(who, file, "x")); }},
    };
  }

  // All that a client sees of the tree but times of access.
  std::string seen() {
    std::string text = described("", root());
    for (const std::string& name : list(root()))
      if (name != "." && name != "..") text += described(name, find(root(), name).handle);
    return text;
  }
  std::string described(std::string_view name, const Handle& object) {
    const Attributes now = attributes(object);
    std::string text(name);
    for (const std::uint64_t value :
         {std::uint64_t{now.mode}, std::uint64_t{now.links}, now.size, now.change,
          static_cast<std::uint64_t>(now.modified.seconds), std::uint64_t{now.modified.nanoseconds},
          static_cast<std::uint64_t>(now.changed.seconds), std::uint64_t{now.changed.nanoseconds}})
      text += ' ' + std::to_string(value);
    if (now.type == FileType::Regular) text += ' ' + read(object, 0, 100);
    const auto xattrs = run(fs().list_xattrs(as(root_user), object));
    if (xattrs)
      for (const std::string& xattr : *xattrs) text += ' ' + xattr;
    return text + '\n';
  }

  const Handle top = root();
  Handle file, other, symlink;
  const std::shared_ptr<LateFailingSteps> steps = std::make_shared<LateFailingSteps>();
  std::shared_ptr<SteppedStore> late;
};

TEST_P(VfsFailureContract, an_operation_that_fails_late_leaves_nothing_behind) {
  for (const Tried& each : all()) {
    SCOPED_TRACE(each.what);
    const std::string before = seen();
    steps->fails = [](Point point) { return point.when == Point::When::Begin; };
    steps->failed.clear();
    EXPECT_EQ(each.status(), Status::Io);
    const std::vector<Point> once{{each.called, Point::When::Begin}};
    EXPECT_EQ(steps->failed, once);
    EXPECT_EQ(seen(), before);
    steps->fails = {};
    EXPECT_NE(each.status(), Status::Io) << "it is done when it is tried again";
  }
}

// The caller cannot know whether it was done: the store has done it, once.
TEST_P(VfsFailureContract, an_operation_whose_answer_fails_tells_it_once) {
  for (const Tried& each : changing_names()) {
    SCOPED_TRACE(each.what);
    const std::string before = seen();
    steps->fails = [](Point point) { return point.when == Point::When::Happened; };
    steps->failed.clear();
    EXPECT_EQ(each.status(), Status::Io);
    const std::vector<Point> once{{each.called, Point::When::Happened}};
    EXPECT_EQ(steps->failed, once);
    EXPECT_NE(seen(), before);
    steps->fails = {};
    const std::optional<Status> again = each.status();
    EXPECT_TRUE(again == Status::Exists || again == Status::NoEntry) << "it was done before";
  }
}

TEST_P(VfsFailureContract, what_is_under_way_beside_it_goes_on) {
  const CallerContext who = as(root_user);
  const CreateHow how;
  steps->fails = [](Point point) { return point == Point{Called::Mkdir, Point::When::Begin}; };
  const SetAttributes attributes;
  const auto first = start(late->create(who, top, "first", how));
  const auto failing = start(late->mkdir(who, top, "failing", attributes));
  const auto second = start(late->create(who, top, "second", how));
  EXPECT_FALSE(failing->has_value()) << "it fails later";
  loop().drain();
  ASSERT_TRUE(first->has_value() && failing->has_value() && second->has_value());
  EXPECT_TRUE((*first)->ok());
  EXPECT_TRUE((*second)->ok());
  EXPECT_EQ((*failing)->error(), Status::Io);
  EXPECT_EQ(lookup_status(root(), "failing"), Status::NoEntry);
  EXPECT_EQ(lookup_status(root(), "second"), std::nullopt);
}

}  // namespace stag::vfs::testing
