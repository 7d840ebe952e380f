#include "conform/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stag::conform {
namespace {

constexpr std::string_view kTool = "stag conform";

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
                       const std::vector<Result>& results, int errors) {
  const Counts counts = count(results);
  return fmt::format("<{} name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
                     element, name, counts.all() + errors, counts.fail, errors,
                     counts.skipped + counts.listed);
}

std::string junit_trouble(const std::string& trouble) {
  return "  " + junit_head("testsuite", kTool, {}, 1) +
         fmt::format(
             "    <testcase classname=\"{}\" name=\"the run\" time=\"0\">\n"
             "      <error message=\"{}\"/>\n    </testcase>\n  </testsuite>\n",
             kTool, escaped_xml(trouble));
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

std::string junit(const std::vector<Result>& results, const std::string& trouble) {
  std::vector<std::string> suites;
  for (const Result& result : results)
    if (std::ranges::find(suites, result.title.suite) == suites.end())
      suites.push_back(result.title.suite);
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text += junit_head("testsuites", kTool, results, trouble.empty() ? 0 : 1);
  for (const std::string& suite : suites) {
    std::vector<Result> own;
    std::ranges::copy_if(results, std::back_inserter(own),
                         [&](const Result& each) { return each.title.suite == suite; });
    text += "  " + junit_head("testsuite", escaped_xml(suite), own, 0);
    for (const Result& result : own) text += junit_case(result);
    text += "  </testsuite>\n";
  }
  if (!trouble.empty()) text += junit_trouble(trouble);
  return text + "</testsuites>\n";
}

std::string json(const std::string& server, const std::vector<Result>& results,
                 const std::string& trouble) {
  const Counts counts = count(results);
  nlohmann::ordered_json document;
  document["server"] = printable(server);
  document["trouble"] = printable(trouble);
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
