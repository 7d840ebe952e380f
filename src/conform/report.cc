#include "conform/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stag::conform {
namespace {

// Details may have bytes that a server chose: what is not printable ASCII is shown as \xNN.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= 0x20 && byte < 0x7f)
      shown += each;
    else
      shown += fmt::format("\\x{:02x}", byte);
  }
  return shown;
}

std::string escaped_xml(std::string_view text) {
  std::string escaped;
  for (const char each : printable(text)) switch (each) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += each;
    }
  return escaped;
}

std::string junit_case(const Result& result) {
  const Title& title = result.title;
  std::string text = fmt::format(R"(    <testcase classname="{}.{}" name="{}" time="{:.6f}">)",
                                 escaped_xml(title.suite), escaped_xml(title.group),
                                 escaped_xml(title.name), result.seconds);
  text += fmt::format("\n      <properties><property name=\"section\" value=\"{}\"/>",
                      escaped_xml(title.section));
  if (!title.requirements.empty())
    text += fmt::format(R"(<property name="requirements" value="{}"/>)",
                        escaped_xml(title.requirements));
  text += "</properties>\n";
  const std::string detail = escaped_xml(result.verdict.detail);
  if (result.verdict.outcome == Outcome::Fail)
    text += fmt::format("      <failure message=\"{}\"/>\n", detail);
  else if (result.verdict.outcome != Outcome::Pass)
    text += fmt::format("      <skipped message=\"{}: {}\"/>\n", to_string(result.verdict.outcome),
                        detail);
  else if (!detail.empty())
    text += fmt::format("      <system-out>{}</system-out>\n", detail);
  return text + "    </testcase>\n";
}

std::string junit_head(std::string_view element, std::string_view name,
                       const std::vector<Result>& results) {
  const Counts counts = count(results);
  return fmt::format("<{} name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n",
                     element, name, counts.all(), counts.fail, counts.skipped + counts.listed);
}

}  // namespace

void Counts::add(Outcome outcome) {
  switch (outcome) {
    case Outcome::Pass:
      ++pass;
      break;
    case Outcome::Fail:
      ++fail;
      break;
    case Outcome::Skipped:
      ++skipped;
      break;
    case Outcome::Listed:
      ++listed;
  }
}

Counts count(const std::vector<Result>& results) {
  Counts counts;
  for (const Result& result : results) counts.add(result.verdict.outcome);
  return counts;
}

std::string junit(const std::vector<Result>& results) {
  std::vector<std::string> suites;
  for (const Result& result : results)
    if (std::ranges::find(suites, result.title.suite) == suites.end())
      suites.push_back(result.title.suite);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += junit_head("testsuites", "stag conform", results);
  for (const std::string& suite : suites) {
    std::vector<Result> own;
    std::ranges::copy_if(results, std::back_inserter(own),
                         [&](const Result& each) { return each.title.suite == suite; });
    text += "  " + junit_head("testsuite", escaped_xml(suite), own);
    for (const Result& result : own) text += junit_case(result);
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

std::string json(const std::string& server, const std::vector<Result>& results) {
  const Counts counts = count(results);
  nlohmann::ordered_json document;
  document["server"] = printable(server);
  document["counts"] = {{"pass", counts.pass},
                        {"fail", counts.fail},
                        {"skipped", counts.skipped},
                        {"listed", counts.listed}};
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const Result& result : results)
    cases.push_back({{"suite", result.title.suite},
                     {"group", result.title.group},
                     {"name", result.title.name},
                     {"section", result.title.section},
                     {"requirements", result.title.requirements},
                     {"outcome", to_string(result.verdict.outcome)},
                     {"detail", printable(result.verdict.detail)},
                     {"seconds", result.seconds}});
  document["cases"] = std::move(cases);
  return document.dump(2) + "\n";
}

}  // namespace stag::conform
