#include "bench/report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stag::bench {
namespace {

constexpr double kWidth = 820, kHeight = 525;
constexpr double kLeft = 80, kRight = 795, kLegend = 54, kTop = 70, kBottom = 410;
constexpr double kCaption = 480, kCaptionLine = 17;
constexpr int kMostRoundTicks = 9;
constexpr double kCharacter = 7.2;  // how wide one is in the legend, about
constexpr const char* kColours[] = {"#0b62a4", "#c8500a", "#2f8f2f",
                                    "#8a3fa0", "#7a7a7a", "#b8860b"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char each : text) {
    if (each == '<')
      safe += "&lt;";
    else if (each == '>')
      safe += "&gt;";
    else if (each == '&')
      safe += "&amp;";
    else if (each == '"')
      safe += "&quot;";
    else
      safe += each;
  }
  return safe;
}

// 65536 -> 64 Ki, as sizes and depths are powers of two.
std::string binary(double value) {
  if (value >= 1 << 20) return fmt::format("{:g} Mi", value / (1 << 20));
  return value >= 1 << 10 ? fmt::format("{:g} Ki", value / (1 << 10)) : fmt::format("{:g}", value);
}

std::string decimal(double value) {
  if (value >= 1e6) return fmt::format("{:g} M", value / 1e6);
  return value >= 1e3 ? fmt::format("{:g} k", value / 1e3) : fmt::format("{:g}", value);
}

// One, two or five times a power of ten, so that there are about six steps up to `most`.
double step_for(double most) {
  const double rough = most / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

// ... 0.5, 1, 2, 5, 10 ...: where a logarithmic axis may begin and end. Between whole powers of ten
// much of it would be empty.
constexpr int kPerDecade = 3;
double round_value(int number) {
  const int decade = number / kPerDecade - (number % kPerDecade < 0 ? 1 : 0);
  constexpr double kFactors[kPerDecade] = {1, 2, 5};
  return kFactors[number - decade * kPerDecade] * std::pow(10, decade);
}
int last_round_up_to(double value) {
  int number = kPerDecade * static_cast<int>(std::floor(std::log10(value)));
  while (round_value(number + 1) <= value) ++number;
  return number;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    for (const Line& line : plot.lines)
      for (const Point& point : line.points) include(point);
    if (!plot.log_y || least_y_ <= 0) return;
    first_ = last_round_up_to(least_y_);
    last_ = std::max(last_round_up_to(most_y_), first_ + 1);
    if (round_value(last_) < most_y_) ++last_;
  }

  std::string document() {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
        "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" "
        "fill=\"white\"/>\n",
        kWidth, kHeight);
    text(kLeft, 28, "start", plot_.title, " font-size=\"17\"");
    if (least_x_ > 0) {
      x_axis();
      y_axis();
      // What lies behind, first.
      for (std::size_t i = 0; i < plot_.lines.size(); ++i) band(i);
      for (std::size_t i = 0; i < plot_.lines.size(); ++i) line(i);
      legend();
    }
    for (std::size_t i = 0; i < plot_.caption.size(); ++i)
      text(kLeft, kCaption + kCaptionLine * static_cast<double>(i), "start", plot_.caption[i],
           " font-size=\"11\" fill=\"#555\"");
    return svg_ + "</svg>\n";
  }

 private:
  void include(const Point& point) {
    if (least_x_ == 0 || point.x < least_x_) least_x_ = point.x;
    const double low = least_of(point);
    if (least_y_ == 0 || low < least_y_) least_y_ = low;
    most_x_ = std::max(most_x_, point.x);
    most_y_ = std::max(most_y_, most_of(point));
  }
  static double least_of(const Point& point) { return point.least > 0 ? point.least : point.y; }
  static double most_of(const Point& point) { return std::max(point.most, point.y); }
  static const char* colour(std::size_t index) { return kColours[index % std::size(kColours)]; }
  double x(double value) const {
    const double share =
        most_x_ > least_x_ ? std::log(value / least_x_) / std::log(most_x_ / least_x_) : 0.5;
    return kLeft + share * (kRight - kLeft);
  }
  double y(double value) const {
    const double low = round_value(first_);
    const double share = plot_.log_y ? std::log(value / low) / std::log(round_value(last_) / low)
                                     : value / (most_y_ * 1.05);
    return kBottom - share * (kBottom - kTop);
  }
  void text(double at_x, double at_y, const char* anchor, const std::string& what,
            const std::string& more = "") {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", at_x,
                        at_y, anchor, more, escaped(what));
  }
  void rule(double x1, double y1, double x2, double y2) {
    svg_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", x1, y1,
        x2, y2);
  }
  void x_axis() {
    for (double value = least_x_; value <= most_x_; value *= 2) {
      rule(x(value), kTop, x(value), kBottom);
      text(x(value), kBottom + 20, "middle", binary(value));
    }
    text((kLeft + kRight) / 2, kBottom + 46, "middle", plot_.x_label);
  }
  void y_tick(double value) {
    rule(kLeft, y(value), kRight, y(value));
    text(kLeft - 8, y(value) + 4, "end", decimal(value));
  }
  void y_axis() {
    if (plot_.log_y) {
      const bool all = last_ - first_ <= kMostRoundTicks;
      for (int tick = first_; tick <= last_; ++tick)
        if (all || tick == first_ || tick == last_ || tick % kPerDecade == 0)
          y_tick(round_value(tick));
    } else {
      const double step = step_for(most_y_);
      for (int i = 0; i * step <= most_y_ * 1.05; ++i) y_tick(i * step);
    }
    const double middle = (kTop + kBottom) / 2;
    text(22, middle, "middle", plot_.y_label,
         fmt::format(" transform=\"rotate(-90 22 {})\"", middle));
  }
  // From the least to the most of each point's samples: there along the tops, back along the
  // bottoms.
  void band(std::size_t index) {
    const std::vector<Point>& points = plot_.lines[index].points;
    std::string places;
    for (const Point& point : points)
      places += fmt::format("{:.1f},{:.1f} ", x(point.x), y(most_of(point)));
    for (auto point = points.rbegin(); point != points.rend(); ++point)
      places += fmt::format("{:.1f},{:.1f} ", x(point->x), y(least_of(*point)));
    svg_ += fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.18\"/>\n", places,
                        colour(index));
  }
  // In a row above the lines.
  void legend() {
    double at = kLeft;
    for (std::size_t i = 0; i < plot_.lines.size(); ++i) {
      const std::string& name = plot_.lines[i].name;
      svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"16\" height=\"4\" fill=\"{}\"/>\n",
                          at, kLegend - 6, colour(i));
      text(at + 22, kLegend, "start", name);
      at += 46 + kCharacter * static_cast<double>(name.size());
    }
  }
  static std::string values(const Point& point) {
    std::string text = fmt::format("{:g}, {:.4g}", point.x, point.y);
    if (point.most > 0) text += fmt::format(" ({:.4g} to {:.4g})", point.least, point.most);
    return text;
  }
  void line(std::size_t index) {
    const Line& line = plot_.lines[index];
    std::string places, marks;
    for (const Point& point : line.points) {
      places += fmt::format("{:.1f},{:.1f} ", x(point.x), y(point.y));
      marks += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}: "
          "{}</title></circle>\n",
          x(point.x), y(point.y), colour(index), escaped(line.name), values(point));
    }
    svg_ +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n{}",
                    places, colour(index), marks);
  }

  const Plot& plot_;
  std::string svg_;
  double least_x_ = 0, most_x_ = 0, least_y_ = 0, most_y_ = 0;
  int first_ = 0, last_ = 1;  // of a logarithmic axis, by round_value()
};

}  // namespace

std::string to_svg(const Plot& plot) {
  return Drawing(plot).document();
}

}  // namespace stag::bench
