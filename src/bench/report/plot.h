// Line plots as SVG, for people: axes with units, a grid, a legend, a point for each value, and how
// far its samples lie apart.
#pragma once

#include <string>
#include <vector>

namespace stag::bench {

struct Point {
  double x = 0, y = 0;
  // Of the samples of which y is the median; 0: there is but one.
  double least = 0, most = 0;
};

struct Line {
  std::string name;
  std::vector<Point> points;
};

struct Plot {
  std::string title;
  std::string x_label, y_label;  // with their units
  bool log_y = false;            // the x axis always is; all values are above 0
  std::vector<Line> lines;
  // Below the picture, a line of text each: what the reader of it needs to know.
  std::vector<std::string> caption{};
};

// A whole SVG document. Each point carries its values as a title, which browsers show.
std::string to_svg(const Plot& plot);

}  // namespace stag::bench
