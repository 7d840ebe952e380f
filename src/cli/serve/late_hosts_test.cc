#include "cli/serve/late_hosts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "cli/serve/exports_file.h"
#include "testing/manual_loop.h"

namespace stag::cli {
namespace {

class NoNetgroups final : public HostService {
 public:
  Result<std::string, std::string> check_netgroup(const std::string&) override {
    return std::string("there is no such netgroup");
  }
  Result<bool, std::string> is_mount_point(const std::string&) override { return true; }
};

ExportLine line_of(std::string_view text) {
  NoNetgroups hosts;
  auto file = parse_exports_files({{"exports", std::string(text)}}, hosts);
  EXPECT_TRUE(file.ok()) << file.error();
  return file.ok() ? file->lines.at(0) : ExportLine();
}

using Texts = std::vector<std::string>;

// Asks for the export's late hosts a name service that knows these.
Texts answer(ExportLine& line, const HostAnswers& known) {
  HostAnswers answers;
  for (const std::string& host : late_hosts(line)) {
    const auto found = known.find(host);
    answers.emplace(host,
                    found != known.end() ? found->second : Failure{std::string("no such host")});
  }
  return take_answers(line, answers);
}

const HostAnswers kNobodyKnown;
const HostAnswers kDeskIs8 = {{"desk", Texts{"192.0.2.8"}}};

// What a caller from this address may do; null: nothing.
std::optional<nfs::ExportOptions> terms_of(const ExportLine& line, const char* address) {
  const nfs::Export made{.id = 1, .spec = {line.path, nullptr, line.options, rules_of(line)}};
  rpc::Origin origin;
  origin.peer = {.host = address, .port = 700};
  const nfs::ExportOptions* options = made.terms_for(origin).options;
  return options == nullptr ? std::nullopt : std::optional(*options);
}
std::string rights_of(const ExportLine& line, const char* address) {
  const auto options = terms_of(line, address);
  if (!options) return "closed";
  return options->read_only ? "ro" : "rw";
}

TEST(LateHosts, are_told_with_why_and_leave_an_export_open_to_nobody_else) {
  ExportLine line = line_of("/srv nowhere(rw) @nobody(ro)");
  EXPECT_EQ(answer(line, kNobodyKnown), Texts());
  EXPECT_EQ(unknown_clients(line),
            (Texts{"'nowhere': no such host", "'@nobody': there is no such netgroup"}));
  EXPECT_FALSE(late_hosts(line).empty());
  EXPECT_EQ(rights_of(line_of("/srv nowhere(rw)"), "192.0.2.9"), "closed")
      << "an export without clients is open to all";
}

TEST(LateHosts, have_the_place_of_their_line_once_they_are_known) {
  ExportLine line = line_of("/srv nowhere(rw) desk(ro) gone(ro) *(ro)");
  EXPECT_EQ(answer(line, kDeskIs8), Texts{"'desk': 192.0.2.8"});
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro");
  EXPECT_EQ(answer(line, {{"nowhere", Texts{"192.0.2.9", "192.0.2.8"}}}),
            Texts{"'nowhere': 192.0.2.9, 192.0.2.8"});
  EXPECT_EQ(unknown_clients(line), Texts{"'gone': no such host"});
  EXPECT_FALSE(late_hosts(line).empty());
  EXPECT_EQ(rights_of(line, "192.0.2.9"), "rw");
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "rw") << "the first that has the address counts";
}

TEST(LateHosts, do_not_take_the_place_of_a_client_that_stands_before_them) {
  ExportLine line = line_of("/srv desk(ro) nowhere(rw)");
  answer(line, kDeskIs8);
  EXPECT_EQ(answer(line, {{"nowhere", Texts{"192.0.2.8"}}}).size(), 1u);
  EXPECT_EQ(rules_of(line).size(), 1u);
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro");
  EXPECT_TRUE(late_hosts(line).empty());
}

TEST(LateHosts, that_were_known_before_keep_their_addresses_and_are_asked_for_again) {
  ExportLine before = line_of("/srv desk(rw)");
  answer(before, kDeskIs8);
  EXPECT_EQ(rights_of(before, "192.0.2.8"), "rw");
  // Read again with other options, while the name service is out.
  ExportLine line = line_of("/srv desk(ro) *(rw,no_root_squash)");
  EXPECT_EQ(answer(line, kNobodyKnown), Texts());
  keep_addresses(line, before);
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro") << "neither locked out nor let in by '*'";
  EXPECT_EQ(rights_of(line, "192.0.2.9"), "rw") << "nor does he narrow others";
  EXPECT_FALSE(late_hosts(line).empty());
  EXPECT_EQ(unknown_clients(line), Texts{"'desk': no such host; it stays 192.0.2.8"});
  // And once more.
  ExportLine again = line_of("/srv desk(ro) *(rw)");
  answer(again, kNobodyKnown);
  keep_addresses(again, line);
  EXPECT_EQ(rights_of(again, "192.0.2.8"), "ro");
  EXPECT_EQ(answer(again, {{"desk", Texts{"192.0.2.9"}}}), Texts{"'desk': 192.0.2.9"});
  EXPECT_EQ(rights_of(again, "192.0.2.9"), "ro");
  EXPECT_EQ(rights_of(again, "192.0.2.8"), "rw") << "its former address is another's";
  EXPECT_TRUE(late_hosts(again).empty());
}

TEST(LateHosts, leave_to_others_what_they_took_from_them_while_they_had_their_address) {
  ExportLine line = line_of("/srv nowhere(rw) desk(ro)");
  answer(line, kDeskIs8);
  keep_addresses(line, [] {
    ExportLine before = line_of("/srv nowhere(rw)");
    answer(before, {{"nowhere", Texts{"192.0.2.8"}}});
    return before;
  }());
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "rw");
  answer(line, {{"nowhere", Texts{"192.0.2.9"}}});
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro");
}

TEST(LateHosts, that_never_were_known_get_no_more_by_a_rule_for_many) {
  for (const char* many : {"*", "192.0.2.0/24"}) {
    ExportLine line =
        line_of("/srv nowhere(ro) 192.0.2.9(rw) " + std::string(many) + "(rw,no_root_squash)");
    EXPECT_EQ(rights_of(line, "192.0.2.8"), "ro") << many;
    EXPECT_TRUE(terms_of(line, "192.0.2.8")->root_squash) << many;
    EXPECT_EQ(rights_of(line, "192.0.2.9"), "rw") << "he is named himself";
    answer(line, {{"nowhere", Texts{"192.0.2.7"}}});
    EXPECT_EQ(rights_of(line, "192.0.2.7"), "ro") << many;
    EXPECT_EQ(rights_of(line, "192.0.2.8"), "rw") << many;
    EXPECT_FALSE(terms_of(line, "192.0.2.8")->root_squash) << many;
  }
  EXPECT_EQ(rights_of(line_of("/srv nowhere(rw,no_root_squash) *(ro)"), "192.0.2.8"), "ro");
  EXPECT_FALSE(terms_of(line_of("/srv nowhere(ro,no_rdma) *(rw)"), "192.0.2.8")->rdma);
  EXPECT_EQ(rights_of(line_of("/srv nowhere(rw,sec=krb5) *(rw,sec=sys)"), "192.0.2.8"), "closed");
  EXPECT_EQ(terms_of(line_of("/srv nowhere(sec=krb5) *(sec=sys:krb5)"), "192.0.2.8")->flavors,
            std::vector{oncrpc::AuthFlavor::KRB5});
}

TEST(LateHosts, that_never_were_known_get_no_more_by_any_flavor) {
  using enum oncrpc::AuthFlavor;
  for (const char* lines : {"/srv nowhere(sec=krb5,rw,sec=sys,ro) *(sec=krb5i:sys:krb5,rw)",
                            "/srv nowhere(sec=krb5:sys,rw) *(sec=krb5i:krb5,rw,sec=sys,ro)"}) {
    const auto options = terms_of(line_of(lines), "192.0.2.8");
    EXPECT_FALSE(options->of(KRB5).read_only) << lines;
    EXPECT_TRUE(options->of(AUTH_SYS).read_only) << lines;
    EXPECT_EQ(options->of(KRB5).flavors, options->flavors) << lines;
    EXPECT_EQ(options->by_flavor.size(), 2u) << lines;
  }
}

TEST(LateHosts, that_never_were_known_act_as_no_user_of_a_rule_for_many) {
  const auto ids_of = [](const std::string& clients, oncrpc::AuthFlavor flavor) {
    const nfs::ExportOptions options =
        terms_of(line_of("/srv " + clients), "192.0.2.8")->of(flavor);
    return std::pair(options.anonymous_uid, options.anonymous_gid);
  };
  using enum oncrpc::AuthFlavor;
  const std::pair nobody(65534u, 65534u);
  EXPECT_EQ(ids_of("*(all_squash,anonuid=7,anongid=8) nowhere(all_squash)", AUTH_SYS), nobody);
  EXPECT_EQ(ids_of("*(all_squash,anonuid=7) nowhere(all_squash,anonuid=9)", AUTH_SYS), nobody)
      << "nor do others act as his";
  EXPECT_EQ(ids_of("*(all_squash,anonuid=7) nowhere(all_squash,anonuid=7) "
                   "away(all_squash,anonuid=9)",
                   AUTH_SYS),
            nobody);
  EXPECT_EQ(ids_of("*(all_squash,anonuid=7) nowhere(all_squash,anonuid=7)", AUTH_SYS).first, 7u);
  EXPECT_EQ(ids_of("*(all_squash,anonuid=7) nowhere(rw)", AUTH_SYS).first, 7u)
      << "he may say that he is user 7";
  EXPECT_EQ(ids_of("*(all_squash,anonuid=0) nowhere(rw)", AUTH_SYS).first, 65534u)
      << "but not that he is root";
  EXPECT_EQ(ids_of("*(sec=krb5,all_squash,anonuid=7) nowhere(sec=krb5)", KRB5).first, 65534u)
      << "nor who another user is";
  const std::string by_flavor =
      "*(all_squash,anonuid=7,sec=sys:krb5) nowhere(sec=sys,rw,sec=krb5,all_squash,anonuid=9)";
  EXPECT_EQ(ids_of(by_flavor, AUTH_SYS).first, 7u);
  EXPECT_EQ(ids_of(by_flavor, KRB5).first, 65534u);
}

TEST(LateHosts, are_late_without_an_address_of_IP) {
  ExportLine line = line_of("/srv desk(rw)");
  EXPECT_EQ(answer(line, {{"desk", Texts{"desk"}}}), Texts());
  EXPECT_FALSE(late_hosts(line).empty());
  EXPECT_EQ(rights_of(line, "192.0.2.8"), "closed");
}

// A server that asks for "desk" every now and then.
struct Asking {
  explicit Asking(HostLookup lookup)
      : late(loop, reloads,
             {.late =
                  [this] {
                    find_memory();
                    return std::set<std::string>{"desk"};
                  },
              .lookup = std::move(lookup),
              .known =
                  [this](const HostAnswers& answers) {
                    find_memory();
                    known = answers;
                  }}) {}
  void find_memory() {
    if (without_memory > 0 && without_memory-- > 0) throw std::bad_alloc();
  }

  testing::ManualLoop loop;
  int reloaded = 0;
  int without_memory = 0;  // so many times
  HostAnswers known{};
  Reloads reloads{loop, {.reload = [this] { ++reloaded; }, .done = [] {}}};
  LateHosts late;
};

TEST(LateHosts, are_told_of_when_the_name_service_has_answered) {
  Asking server([](const std::string&) -> HostAnswer { return Texts{"192.0.2.8"}; });
  while (server.known.empty()) {
    server.loop.pass(std::chrono::seconds(1));
    std::this_thread::yield();
  }
  EXPECT_EQ(*server.known.at("desk"), Texts{"192.0.2.8"});
  EXPECT_TRUE(server.reloads.idle());
}

TEST(LateHosts, are_asked_for_again_where_there_was_no_memory_for_it) {
  Asking server([](const std::string&) -> HostAnswer { return Texts{"192.0.2.8"}; });
  server.without_memory = 2;  // to ask, and to take the answer
  while (server.known.empty()) {
    try {
      server.loop.pass(std::chrono::seconds(1));
    } catch (const std::bad_alloc&) {
      // As the loop of a server goes on.
    }
    ASSERT_TRUE(server.loop.has_timer());
    std::this_thread::yield();
  }
  EXPECT_EQ(server.without_memory, 0);
}

TEST(LateHosts, hold_up_neither_a_reload_nor_the_end_when_the_name_service_never_answers) {
  const auto asked = std::make_shared<std::promise<void>>();
  std::promise<void> end_of_test;
  {
    Asking server([asked, ended = end_of_test.get_future().share()](const std::string&) {
      asked->set_value();
      ended.wait();
      return HostAnswer(Texts{});
    });
    server.loop.pass(std::chrono::seconds(60));
    asked->get_future().wait();
    server.reloads.ask();
    server.loop.drain();
    EXPECT_EQ(server.reloaded, 1);
    bool ended = false;
    server.reloads.end([&] { ended = true; });
    EXPECT_TRUE(ended);
  }
  end_of_test.set_value();
}

}  // namespace
}  // namespace stag::cli
