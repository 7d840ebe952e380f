#include "bench/report/plot.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace stag::bench {
namespace {

using ::testing::HasSubstr;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Each element is closed, in the reverse order of opening; no text has a bare special character.
bool well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos || svg.find('<', at + 1) < end) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.back() == '/') continue;
    if (name.front() != '/') {
      open.push_back(name);
      continue;
    }
    if (open.empty() || "/" + open.back() != name) return false;
    open.pop_back();
  }
  for (std::size_t at = svg.find('&'); at != std::string::npos; at = svg.find('&', at + 1))
    if (svg.find(';', at) > at + 5) return false;
  return open.empty() && svg.starts_with("<svg ");
}

Plot example() {
  return {"A < B & C",
          "block, bytes",
          "GB/s",
          false,
          {{"ours", {{4096, 1.5}, {8192, 2.25}, {16384, 4}}}, {"\"raw\"", {{4096, 3}}}}};
}

TEST(Plot, is_well_formed_and_holds_every_point_with_its_values) {
  const std::string svg = to_svg(example());
  EXPECT_TRUE(well_formed(svg)) << svg;
  EXPECT_EQ(count_of(svg, "<circle "), 4u);
  EXPECT_THAT(svg, HasSubstr("<title>ours: 8192, 2.25</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>&quot;raw&quot;: 4096, 3</title>"));
}

TEST(Plot, names_its_axes_and_its_lines) {
  const std::string svg = to_svg(example());
  for (const char* text : {">A &lt; B &amp; C<", ">block, bytes<", ">GB/s<", ">ours<", ">4 Ki<"})
    EXPECT_THAT(svg, HasSubstr(text));
}

TEST(Plot, keeps_every_point_inside_on_both_scales) {
  for (const bool log_y : {false, true}) {
    Plot plot{"", "", "", log_y, {{"", {{1, 0.02}, {128, 70'000}}}}};
    const std::string svg = to_svg(plot);
    EXPECT_TRUE(well_formed(svg));
    for (std::size_t at = svg.find("cy=\""); at != std::string::npos;
         at = svg.find("cy=\"", at + 1)) {
      const double y = std::stod(svg.substr(at + 4));
      EXPECT_GE(y, 50);
      EXPECT_LE(y, 410);
    }
  }
}

// Where the points lie, of the height of the axis: the least and the most share of it.
std::pair<double, double> height_of(const std::vector<double>& values) {
  Plot plot{"", "", "", true, {{"", {}}}};
  for (const double value : values) plot.lines[0].points.push_back({1, value});
  const std::string svg = to_svg(plot);
  std::vector<double> shares;
  for (std::size_t at = svg.find("cy=\""); at != std::string::npos; at = svg.find("cy=\"", at + 1))
    shares.push_back((410 - std::stod(svg.substr(at + 4))) / (410 - 70));
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  return {*least, *most};
}

TEST(Plot, leaves_no_third_empty_of_a_logarithmic_axis_of_a_decade) {
  for (const auto& [least, most] :
       {std::pair(11.0, 110.0), std::pair(95.0, 990.0), std::pair(9.0, 100'001.0)}) {
    const auto [low, high] = height_of({least, most});
    EXPECT_LE(low, 0.33) << least;
    EXPECT_GE(high, 0.67) << most;
  }
}

TEST(Plot, has_round_ends_of_a_logarithmic_axis) {
  Plot plot{"", "", "", true, {{"", {{1, 0.02}, {2, 30}}}}};
  const std::string wide = to_svg(plot);
  for (const char* tick : {">0.02<", ">0.1<", ">1<", ">10<", ">50<"})
    EXPECT_THAT(wide, HasSubstr(tick));
  EXPECT_EQ(wide.find(">0.2<"), std::string::npos);
  plot.lines[0].points = {{1, 3}, {2, 3}};
  const std::string flat = to_svg(plot);
  for (const char* tick : {">2<", ">5<"}) EXPECT_THAT(flat, HasSubstr(tick));
}

TEST(Plot, shows_how_far_the_samples_of_a_point_lie_apart) {
  Plot plot{"", "", "", false, {{"ours", {{1, 2, 1.5, 3.5}, {2, 4, 3, 5}}}}};
  const std::string svg = to_svg(plot);
  EXPECT_TRUE(well_formed(svg));
  EXPECT_THAT(svg, HasSubstr("<title>ours: 1, 2 (1.5 to 3.5)</title>"));
  EXPECT_EQ(count_of(svg, "<polygon "), 1u);
}

TEST(Plot, has_its_lines_over_the_whole_width) {
  const std::string svg = to_svg({"", "", "", false, {{"ours", {{1, 2}, {1024, 4}}}}});
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 820 "));
  EXPECT_THAT(svg, HasSubstr("cx=\"80.0\""));
  EXPECT_THAT(svg, HasSubstr("cx=\"795.0\""));
}

TEST(Plot, says_below_what_its_reader_needs_to_know) {
  Plot plot{"", "", "", false, {}, {"a machine & its kernel", "stag 1.0, 2026-11-23"}};
  const std::string svg = to_svg(plot);
  EXPECT_TRUE(well_formed(svg));
  EXPECT_THAT(svg, HasSubstr(">a machine &amp; its kernel<"));
  EXPECT_THAT(svg, HasSubstr(">stag 1.0, 2026-11-23<"));
}

TEST(Plot, is_well_formed_without_points) {
  EXPECT_TRUE(well_formed(to_svg({"nothing", "x", "y", true, {}})));
}

}  // namespace
}  // namespace stag::bench
