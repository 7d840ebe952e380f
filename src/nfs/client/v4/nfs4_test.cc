// The operations of the client in NFS version 4, on our own server.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/task_group.h"
#include "nfs/client/v4/operations.h"
#include "nfs/session/slots.h"
#include "testing/nfs/lying_server.h"
#include "testing/nfs/nfs4_client_world.h"
#include "testing/proves.h"

namespace stag::nfs::client {
namespace {

using testing::Accident;
using testing::Nfs4ClientWorld;

std::string bytes_in_a_row(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

class Nfs4Client : public ::testing::TestWithParam<std::uint32_t>, public Nfs4ClientWorld {
 protected:
  Nfs4Client() : Nfs4ClientWorld(GetParam()) {}

  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    return outcome ? std::move(*outcome) : T{};
  }
  template <class T>
  Status status(Task<Outcome<T>> task) {
    const Outcome<T> outcome = run(std::move(task));
    if (outcome) ADD_FAILURE() << "it succeeded";
    if (!outcome) {
      EXPECT_EQ(outcome.error().kind, Error::Kind::Nfs) << outcome.error().sentence;
    }
    return outcome ? Status::Ok : outcome.error().status;
  }
  Handle root() { return files().root(); }
  Handle file(const std::string& name, std::string_view content = {}) {
    const Node node = must(files().create(root(), name, {.mode = 0644}));
    if (!content.empty()) must(files().write_from(node.handle, 0, bytes_of(content)));
    return node.handle;
  }
  std::string content(const Handle& of, std::size_t size) {
    std::string text(size, '?');
    text.resize(must(files().read_into(of, 0, std::as_writable_bytes(std::span(text)))));
    return text;
  }
  std::vector<std::string> names(Listing::Detail detail = Listing::Detail::Attributes) {
    std::vector<std::string> all;
    Listing listing = files().list(root(), detail);
    for (;;) {
      const auto batch = must(listing.next());
      if (batch.empty()) return all;
      for (const Entry& entry : batch) {
        EXPECT_EQ(entry.attributes.has_value(), detail == Listing::Detail::Attributes);
        EXPECT_EQ(entry.handle.has_value(), detail == Listing::Detail::Attributes);
        all.push_back(entry.name);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4Client, ::testing::Values(0u, 1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4Client, reads_what_it_wrote_reduced_or_not) {
  PROVES("R8267-6.1-a", "R8267-6.1-c");
  for (const bool reduce : {false, true}) {
    files();
    channel.server->channel.reduce = reduce;
    const std::string text = bytes_in_a_row((3u << 20) + 4321);
    const Handle to = file(reduce ? "reduced" : "inline", text);
    EXPECT_TRUE(content(to, text.size() + 100) == text);
    EXPECT_EQ(content(to, 1000), text.substr(0, 1000));
  }
}

TEST_P(Nfs4Client, shows_and_changes_attributes) {
  const Handle of = file("file", "12345");
  SetAttributes changes;
  changes.mode = 04750;
  changes.uid = 1001;
  changes.gid = 1002;
  changes.size = 3;
  changes.accessed = SetTime::to({1000, 5});
  changes.modified = SetTime::to({-2000, 999'999'999});
  must(files().setattr(of, changes));
  const Attributes now = must(files().getattr(of));
  EXPECT_EQ(now.type, FileType::Regular);
  EXPECT_EQ(now.uid, 1001u);
  EXPECT_EQ(now.gid, 1002u);
  EXPECT_EQ(now.size, 3u);
  EXPECT_EQ(now.links, 1u);
  EXPECT_EQ(now.accessed, (Time{1000, 5}));
  EXPECT_EQ(now.modified, (Time{-2000, 999'999'999}));
  EXPECT_NE(now.file_id, 0u);
}

TEST_P(Nfs4Client, changes_nothing_when_the_guard_is_another_time) {
  const Handle of = file("file");
  const Attributes before = must(files().getattr(of));
  SetAttributes changes;
  changes.mode = 0600;
  EXPECT_EQ(status(files().setattr(of, changes, Time{1, 1})), Status::NotSync);
  must(files().setattr(of, changes, before.changed));
  EXPECT_EQ(must(files().getattr(of)).mode, 0600u);
}

TEST_P(Nfs4Client, makes_objects_of_every_kind) {
  EXPECT_EQ(must(files().mkdir(root(), "folder", {.mode = 0750})).attributes.mode, 0750u);
  const Node link = must(files().symlink(root(), "link", "folder/x"));
  EXPECT_EQ(link.attributes.type, FileType::Symlink);
  EXPECT_EQ(must(files().readlink(link.handle, link.attributes.size)), "folder/x");
  EXPECT_EQ(must(files().readlink(link.handle)), "folder/x");
  const Node fifo = must(files().mknod(root(), "fifo", {FileType::Fifo, {}}, {}));
  EXPECT_EQ(fifo.attributes.type, FileType::Fifo);
  const Special disk{FileType::BlockDevice, {8, 1}};
  EXPECT_EQ(must(files().mknod(root(), "disk", disk, {})).attributes.device, (Device{8, 1}));
}

TEST_P(Nfs4Client, creates_in_each_mode) {
  const Handle first = file("file", "content");
  EXPECT_EQ(status(files().create(root(), "file", {}, CreateMode::Guarded)), Status::Exists);
  EXPECT_EQ(status(files().create(root(), "file", {}, CreateMode::Exclusive)), Status::Exists);
  EXPECT_EQ(must(files().create(root(), "file", {})).handle, first);
  EXPECT_EQ(must(files().getattr(first)).size, 7u);
  SetAttributes empty;
  empty.size = 0;
  must(files().create(root(), "file", empty));
  EXPECT_EQ(must(files().getattr(first)).size, 0u);
  const Node alone = must(files().create(root(), "x", {.mode = 0604}, CreateMode::Exclusive));
  EXPECT_EQ(alone.attributes.mode, 0604u);
}

TEST_P(Nfs4Client, leaves_nothing_open_behind_a_creation) {
  file("file", "content");
  ASSERT_EQ(clients().size(), 1u);
  EXPECT_EQ(clients()[0].held.opens, 0u);
}

TEST_P(Nfs4Client, reads_again_as_often_as_connections_are_cut_behind_a_READ) {
  const Handle of = file("file", "content");
  channel.accident = Accident::CutAfter;
  channel.at = channel.calls + 1;
  channel.times = 10;
  EXPECT_EQ(content(of, 7), "content");
}

TEST_P(Nfs4Client, removes_files_by_remove_and_directories_by_rmdir) {
  file("file");
  must(files().mkdir(root(), "folder", {}));
  EXPECT_EQ(status(files().remove(root(), "folder")), Status::IsDirectory);
  EXPECT_EQ(status(files().rmdir(root(), "file")), Status::NotDirectory);
  EXPECT_EQ(status(files().remove(root(), "nothing")), Status::NoEntry);
  EXPECT_EQ(names(), (std::vector<std::string>{"file", "folder"}));
  must(files().remove(root(), "file"));
  must(files().rmdir(root(), "folder"));
  EXPECT_TRUE(names().empty());
}

TEST_P(Nfs4Client, renames_and_links) {
  const Handle one = file("one", "1");
  const Handle folder = must(files().mkdir(root(), "folder", {})).handle;
  must(files().rename(root(), "one", folder, "two"));
  must(files().link(one, root(), "three"));
  EXPECT_EQ(must(files().walk("folder/two")).handle, one);
  EXPECT_EQ(must(files().walk("three")).attributes.links, 2u);
  EXPECT_EQ(must(files().walk("folder/../three")).handle, one);
}

TEST_P(Nfs4Client, lists_thousands_of_names_with_and_without_attributes) {
  for (int i = 0; i < 1500; ++i) file("name " + std::to_string(10000 + i));
  const auto all = names();
  EXPECT_EQ(all.size(), 1500u);
  EXPECT_EQ(names(Listing::Detail::Names), all);
}

class Nfs42Client : public Nfs4Client {};
INSTANTIATE_TEST_SUITE_P(Minor, Nfs42Client, ::testing::Values(2u),
                         [](const auto&) { return "v4_2"; });

TEST_P(Nfs42Client, finds_data_and_holes_and_makes_them) {
  const std::string text(1 << 20, 'x');
  const Handle of = file("sparse", text);
  must(files().deallocate(of, {256u << 10, 256u << 10}));
  EXPECT_EQ(must(files().seek(of, 0, Content::Data)), 0u);
  EXPECT_EQ(must(files().seek(of, 0, Content::Hole)), 256u << 10);
  EXPECT_EQ(must(files().seek(of, 256u << 10, Content::Data)), 512u << 10);
  EXPECT_EQ(must(files().seek(of, 512u << 10, Content::Hole)), 1u << 20);
  EXPECT_EQ(must(files().seek(of, 2u << 20, Content::Data)), std::nullopt);
  must(files().allocate(of, {0, 2u << 20}));
  EXPECT_EQ(must(files().getattr(of)).size, 2u << 20);
}

TEST_P(Nfs42Client, reads_holes_by_their_length_alone) {
  const std::string text = bytes_in_a_row(48u << 10);
  const Handle of = file("sparse", text);
  must(files().deallocate(of, {16u << 10, 16u << 10}));
  std::string expected = text;
  expected.replace(16u << 10, 16u << 10, 16u << 10, '\0');

  std::string to(text.size() + 100, '?');
  SparsePart part = must(files().read_plus(of, 0, std::as_writable_bytes(std::span(to))));
  ASSERT_EQ(part.count, text.size());
  EXPECT_TRUE(part.eof);
  EXPECT_TRUE(to.substr(0, part.count) == expected);
  ASSERT_EQ(part.holes.size(), 1u);
  EXPECT_EQ(part.holes[0].offset, 16u << 10);
  EXPECT_EQ(part.holes[0].length, 16u << 10);

  std::string within(100, '?');
  part = must(files().read_plus(of, 20'000, std::as_writable_bytes(std::span(within))));
  EXPECT_EQ(within, std::string(100, '\0'));
  EXPECT_FALSE(part.eof);
  ASSERT_EQ(part.holes.size(), 1u);
  EXPECT_EQ(part.holes[0].offset, 20'000u);
  EXPECT_EQ(part.holes[0].length, 100u) << "no more than there was memory for";

  part = must(files().read_plus(of, text.size(), std::as_writable_bytes(std::span(within))));
  EXPECT_EQ(part.count, 0u);
  EXPECT_TRUE(part.eof);
  EXPECT_EQ(status(files().read_plus(root(), 0, {})), Status::IsDirectory);
}

TEST_P(Nfs42Client, copies_within_the_server) {
  const std::string text = bytes_in_a_row(100'000);
  const Handle from = file("from", text);
  const Handle to = file("to", "0123456789");
  EXPECT_EQ(must(files().copy_range(from, {5, 50'000}, to, 10)), 50'000u);
  EXPECT_TRUE(content(to, 60'000) == "0123456789" + text.substr(5, 50'000));
  EXPECT_EQ(status(files().copy_range(from, {99'990, 1000}, to, 0)), Status::Invalid)
      << "RFC 7862 15.2.3: the file ends before";
}

TEST_P(Nfs42Client, sets_lists_reads_and_removes_extended_attributes) {
  const Handle of = file("file");
  must(files().set_xattr(of, "colour", "red"));
  must(files().set_xattr(of, "size", std::string("a\0b", 3), XattrMode::Create));
  EXPECT_EQ(status(files().set_xattr(of, "size", "x", XattrMode::Create)), Status::Exists);
  EXPECT_EQ(status(files().set_xattr(of, "new", "x", XattrMode::Replace)), Status::NoXattr);
  std::vector<std::string> names = must(files().list_xattrs(of));
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"colour", "size"}));
  EXPECT_EQ(must(files().xattr(of, "size")), std::string("a\0b", 3));
  must(files().remove_xattr(of, "colour"));
  EXPECT_EQ(status(files().xattr(of, "colour")), Status::NoXattr);
}

TEST_P(Nfs4Client, has_parts_of_files_and_extended_attributes_in_version_4_2_only) {
  const Handle of = file("file", "content");
  if (GetParam() == 2) return;
  EXPECT_EQ(status(files().seek(of, 0, Content::Data)), Status::NotSupported);
  EXPECT_EQ(status(files().read_plus(of, 0, {})), Status::NotSupported);
  EXPECT_EQ(status(files().copy_range(of, {0, 7}, of, 100)), Status::NotSupported);
  EXPECT_EQ(status(files().xattr(of, "name")), Status::NotSupported);
}

TEST_P(Nfs4Client, reads_and_sets_access_control_lists_entry_by_entry) {
  const Handle of = file("file");
  const Nfs4Acl plain = must(files().nfs4_acl(of));
  ASSERT_GE(plain.size(), 3u) << "those of the mode";
  EXPECT_TRUE(std::ranges::any_of(plain, [](const Nfs4Ace& ace) { return ace.who == "OWNER@"; }));
  Nfs4Acl wanted = plain;
  wanted.insert(wanted.begin(), {v4::ACE4_ACCESS_ALLOWED_ACE_TYPE, 0,
                                 v4::ACE4_READ_DATA | v4::ACE4_READ_ATTRIBUTES, "1234"});
  must(files().set_nfs4_acl(of, wanted));
  const Nfs4Acl now = must(files().nfs4_acl(of));
  EXPECT_TRUE(std::ranges::any_of(now, [](const Nfs4Ace& ace) {
    return ace.who == "1234" && ace.type == v4::ACE4_ACCESS_ALLOWED_ACE_TYPE &&
           (ace.mask & v4::ACE4_READ_DATA) != 0;
  }));
  wanted[0].who = "nobody@nowhere";
  EXPECT_EQ(status(files().set_nfs4_acl(of, wanted)), Status::Invalid);
}

TEST_P(Nfs4Client, reports_what_the_server_is_able_to_do) {
  const FileSystemInfo info = must(files().info());
  EXPECT_TRUE(info.hard_links && info.symlinks && info.times_can_be_set);
  EXPECT_GE(info.read_max, 1u << 19);
  EXPECT_GE(info.write_max, 1u << 19);
  EXPECT_GE(must(files().name_limits()).max_name, 255u);
  EXPECT_TRUE(must(files().name_limits()).no_truncation);
  EXPECT_GT(must(files().usage()).total_bytes, 0u);
  must(files().ping());
}

TEST_P(Nfs4Client, is_refused_what_its_user_may_not) {
  const Handle mine = file("file");
  EXPECT_EQ(must(files().access(root(), access::kRead | access::kModify)),
            access::kRead | access::kModify);
  options.calls.credentials = rpc::Credentials::sys("tests", 1000, 1000);
  FileSystem other = files().with(options);
  SetAttributes changes;
  changes.mode = 0777;
  EXPECT_EQ(status(other.setattr(mine, changes)), Status::NotOwner);
  EXPECT_EQ(must(other.access(mine, access::kModify)), 0u);
}

TEST_P(Nfs4Client, shares_one_session_among_file_systems) {
  files();
  const int before = channel.calls;
  FileSystem other = files().with(options);
  must(other.getattr(root()));
  EXPECT_EQ(channel.calls, before + 1);
}

TEST_P(Nfs4Client, gives_session_and_client_ID_back_at_the_end) {
  files();
  EXPECT_EQ(clients().size(), GetParam() > 0 ? 1u : 0u) << "4.0: only whoever opens has one";
  run(closed());
  EXPECT_TRUE(clients().empty());
}

// A little of everything, with results that a second execution would not have.
class Nfs4Accidents : public Nfs4ClientWorld {
 public:
  using Nfs4ClientWorld::Nfs4ClientWorld;
  // The first thing that went wrong; empty: nothing.
  std::string live() {
    const std::string text = bytes_in_a_row(200'000);
    const Handle top = files().root();
    std::string wrong;
    const auto check = [&wrong](std::string_view what, const auto& outcome) {
      if (!outcome && wrong.empty()) wrong = std::string(what) + ": " + outcome.error().sentence;
      return outcome.ok();
    };
    const auto folder = run(files().mkdir(top, "folder", {}));
    const Handle in = check("mkdir", folder) ? folder->handle : top;
    const auto made = run(files().create(in, "file", {.mode = 0640}, CreateMode::Guarded));
    if (check("create", made))
      check("write", run(files().write_from(made->handle, 0, bytes_of(text))));
    check("symlink", run(files().symlink(in, "link", "file")));
    check("rename", run(files().rename(in, "link", top, "moved")));
    check("remove", run(files().remove(top, "moved")));
    check("getattr", run(files().getattr(in)));
    Listing listing = files().list(in);
    check("list", run(listing.next()));
    check("remove of the file", run(files().remove(in, "file")));
    check("rmdir", run(files().rmdir(top, "folder")));
    return wrong;
  }
};

// Lives once for each accident of each call.
void expect_calls_to_be_executed_once(std::uint32_t minor) {
  Nfs4Accidents undisturbed(minor);
  ASSERT_EQ(undisturbed.live(), "");
  undisturbed.run(undisturbed.closed());
  const int calls = undisturbed.channel.calls;
  for (const Accident accident : {Accident::CutBefore, Accident::CutAfter}) {
    for (int at = 1; at <= calls; ++at) {
      Nfs4Accidents world(minor);
      world.channel.accident = accident;
      world.channel.at = at;
      EXPECT_EQ(world.live(), "") << "version 4." << minor << ", call " << at;
      world.run(world.closed());
      const auto left = world.clients();
      // One of version 4.0 cannot say that it ends.
      EXPECT_TRUE(left.empty() || (minor == 0 && left.front().held.opens == 0))
          << "version 4." << minor << ", call " << at;
    }
  }
}

TEST(Nfs4ClientAccidents, every_call_is_executed_once_whenever_the_connection_is_cut) {
  PROVES("R8267-6.7.2-d");
  for (const std::uint32_t minor : {0u, 1u, 2u}) expect_calls_to_be_executed_once(minor);
}

TEST(Nfs4ClientAccidents, a_server_that_restarts_before_any_call_is_met_with_a_new_session) {
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    Nfs4Accidents undisturbed(minor);
    undisturbed.files();
    const int from = undisturbed.channel.calls + 1;
    ASSERT_EQ(undisturbed.live(), "");
    for (int at = from; at <= undisturbed.channel.calls; ++at) {
      Nfs4Accidents world(minor);
      world.files();
      world.channel.accident = Accident::Restart;
      world.channel.at = at;
      EXPECT_EQ(world.live(), "") << "version 4." << minor << ", call " << at;
    }
  }
}

TEST(Nfs4ClientAccidents, a_call_without_an_answer_costs_itself_and_no_slot) {
  PROVES("R8267-6.6-d", "R8267-6.6-c");
  Nfs4Accidents world;
  world.files();
  world.channel.accident = Accident::Lost;
  // More often than there are slots.
  for (std::uint32_t i = 0; i < 2 * session::Slots::kMost; ++i) {
    world.channel.at = world.channel.calls + 1;
    const auto lost = world.run(world.files().getattr(world.files().root()));
    ASSERT_FALSE(lost.ok());
    EXPECT_EQ(lost.error().call.reason, Reason::TimedOut);
  }
  world.channel.accident = Accident::None;
  EXPECT_EQ(world.live(), "");
}

TEST(Nfs4ClientAccidents,
     a_server_of_version_4_0_that_is_not_ready_at_the_first_call_is_waited_for) {
  testing::LyingServer server(0);
  int busy = 2;
  server.lie = [&busy](const v4::COMPOUND4args&, v4::COMPOUND4res& results) {
    if (busy-- <= 0) return;
    results.status = v4::NFS4ERR_DELAY;
    results.resarray.resize(1);
    results.resarray[0].opputrootfh().status = v4::NFS4ERR_DELAY;
  };
  const auto ready = server.connect();
  ASSERT_TRUE(ready.ok()) << ready.error().sentence;
  EXPECT_EQ(server.calls, 3);
  busy = std::numeric_limits<int>::max();
  const auto never = server.connect();
  ASSERT_FALSE(never.ok());
  EXPECT_TRUE(never.error().is(Status::Delay)) << never.error().sentence;
}

TEST(Nfs4ClientAccidents, a_referral_is_told_in_words_of_its_own) {
  testing::LyingServer server;
  FileSystem files = server.files();
  server.lie = [](const v4::COMPOUND4args& args, v4::COMPOUND4res& results) {
    results.status = v4::NFS4ERR_MOVED;
    const std::size_t last = args.argarray.size() - 1;
    results.resarray[last].opgetattr().status = v4::NFS4ERR_MOVED;
  };
  const auto got = server.run(files.getattr(files.root()));
  ASSERT_FALSE(got.ok());
  EXPECT_TRUE(got.error().is(Status::Moved)) << got.error().sentence;
  EXPECT_NE(got.error().sentence.find("a referral"), std::string::npos) << got.error().sentence;
}

Task<void> look_at(FileSystem& files, int& done) {
  const Outcome<Attributes> got = co_await files.getattr(files.root());
  EXPECT_TRUE(got.ok()) << got.error().sentence;
  done += got.ok() ? 1 : 0;
}

TEST(Nfs4ClientAccidents, many_at_once_share_the_slots_and_one_recovery) {
  Nfs4Accidents world;
  FileSystem& files = world.files();
  world.channel.restart();
  TaskGroup group;
  int done = 0;
  for (int i = 0; i < 300; ++i) group.add(look_at(files, done));
  world.loop.drain();
  EXPECT_EQ(done, 300);
}

// What the client makes of an owner that a server calls so.
std::optional<std::uint32_t> owner_called(std::string_view name) {
  xdr::Encoder encoder;
  encoder.string(xdr::kNoItem, name);
  const xdr::Stream stream = std::move(encoder).finish();
  const auto values = nfs4::values_of({nfs4::bitmap_of({v4::FATTR4_OWNER}), stream.rope()});
  EXPECT_TRUE(values.has_value()) << name;
  if (!values || values->attributes.uid_unknown) return std::nullopt;
  return values->attributes.uid;
}

TEST(Nfs4Attributes, an_owner_is_the_number_that_its_name_is_if_it_is_one) {
  EXPECT_EQ(owner_called("0"), 0u);
  EXPECT_EQ(owner_called("1000"), 1000u);
  EXPECT_EQ(owner_called("0042"), 42u);
  EXPECT_EQ(owner_called("4294967295"), 4294967295u);
  EXPECT_EQ(owner_called("root"), 0u);
  EXPECT_EQ(owner_called("root@example.org"), 0u);
  for (const std::string_view none : {"", "4294967296", "18446744073709551616", "-1", "+1", " 1",
                                      "12a", "a12", "\xb2", "alice@example.org", "roots"})
    EXPECT_EQ(owner_called(none), std::nullopt) << none;
}

// The results of a COMPOUND that begins with PUTFH, with one more.
class Answer {
 public:
  explicit Answer(v4::nfsstat4 status, std::uint32_t results = 2) {
    encoder_.u32s(status, 0, results);
    encoder_.u32s(v4::OP_PUTFH, results == 1 ? status : v4::NFS4_OK);
  }
  template <class... Words>
  Answer& with(Words... words) {
    encoder_.u32s(words...);
    return *this;
  }
  bool read_by(nfs4::Request& request) {
    xdr::Decoder decoder(std::move(encoder_).finish().rope().flatten());
    return request.decode_results(decoder, false) && decoder.finish().ok();
  }

 private:
  xdr::Encoder encoder_;
};

TEST(Nfs4Results, a_WRITE_is_as_stable_as_one_of_three_words_says) {
  for (const std::uint32_t committed : {0u, 1u, 2u, 3u}) {
    nfs4::Request request;
    request.put_handle(*Handle::from(bytes_of("file")));
    const std::size_t at = request.add_write(0, Rope(), v4::UNSTABLE4);
    Answer answer(v4::NFS4_OK);
    answer.with(v4::OP_WRITE, v4::NFS4_OK, 7, committed, 0x01020304, 0x05060708);
    ASSERT_EQ(answer.read_by(request), committed < 3) << committed;
    if (committed == 3) continue;
    ASSERT_NE(request.written(at), nullptr);
    EXPECT_EQ(request.written(at)->count, 7u);
    EXPECT_EQ(request.written(at)->committed, committed);
    EXPECT_EQ(load_be<std::uint64_t>(request.written(at)->writeverf.data()), 0x0102030405060708u);
  }
}

TEST(Nfs4Results, those_of_an_attempt_are_forgotten_with_the_next_one) {
  nfs4::Values values;
  nfs4::Request request;
  request.put_handle(*Handle::from(bytes_of("file")));
  request.add_getattr(nfs4::node_attributes(), values);
  Answer first(v4::NFS4_OK);
  first.with(v4::OP_GETATTR, v4::NFS4_OK, 1, 1u << v4::FATTR4_TYPE, 4, v4::NF4DIR);
  ASSERT_TRUE(first.read_by(request));
  EXPECT_TRUE(values.describe_node());
  ASSERT_TRUE(Answer(v4::NFS4ERR_STALE, 1).read_by(request));
  EXPECT_EQ(values.state, nfs4::Values::State::Absent);
  // So are those that another one has read to the same place.
  ASSERT_TRUE(Answer(v4::NFS4_OK)
                  .with(v4::OP_GETATTR, v4::NFS4_OK, 1, 1u << v4::FATTR4_TYPE, 4, v4::NF4REG)
                  .read_by(request));
  nfs4::Request next;
  next.put_handle(*Handle::from(bytes_of("file")));
  next.add_getattr(nfs4::node_attributes(), values);
  ASSERT_TRUE(Answer(v4::NFS4ERR_STALE, 1).read_by(next));
  EXPECT_EQ(values.state, nfs4::Values::State::Absent);
}

// A third word of a bitmap4 has attributes that this client does not ask for.
TEST(Nfs4Results, attributes_are_of_as_many_words_as_there_are) {
  const auto state_after = [](auto... words) {
    nfs4::Values values;
    nfs4::Request request;
    request.put_handle(*Handle::from(bytes_of("file")));
    request.add_getattr(nfs4::node_attributes(), values);
    Answer answer(v4::NFS4_OK);
    answer.with(v4::OP_GETATTR, v4::NFS4_OK, static_cast<std::uint32_t>(sizeof...(words)), words...,
                4, v4::NF4REG);
    EXPECT_TRUE(answer.read_by(request));
    return values.state;
  };
  constexpr std::uint32_t kType = 1u << v4::FATTR4_TYPE;
  constexpr std::uint32_t kLinks = 1u << (v4::FATTR4_NUMLINKS - 32);
  using State = nfs4::Values::State;
  EXPECT_EQ(state_after(kType), State::Whole);
  EXPECT_EQ(state_after(kType, 0u), State::Whole);
  EXPECT_EQ(state_after(0u, kLinks), State::Whole);
  EXPECT_EQ(state_after(kType, 0u, 0u), State::Whole);
  EXPECT_EQ(state_after(kType, 0u, 1u), State::Unreadable);
  EXPECT_EQ(state_after(kType, 0u, 0u, 1u), State::Unreadable);
}

}  // namespace
}  // namespace stag::nfs::client
