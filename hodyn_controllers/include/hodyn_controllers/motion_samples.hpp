// Samples of a motion, polynomials of degree 9 between them, and samples that are too dense for
// the digits of their numbers.
//
// Polynomials through samples a time h apart divide a rounding delta of the positions by h^4: the
// snap between them is wrong by some hundred delta / h^4, at 1 kHz and six decimals by 1e8 rad/s^4.
// The motion through fewer samples that meets all others to within their rounding is then the
// motion that was asked for. hodyn_ros/trajectory/rounding.py has the same criterion.
//
// Knows nothing of ROS.

#ifndef HODYN_CONTROLLERS__MOTION_SAMPLES_HPP_
#define HODYN_CONTROLLERS__MOTION_SAMPLES_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace hodyn_controllers
{

constexpr std::size_t kMotions = 5;  ///< Position and its first four time derivatives.

constexpr std::size_t kCoefficients = 2 * kMotions;  ///< Of a polynomial of degree 9.

/// Taylor coefficients 0 to 4 of a polynomial of degree 9 at x, by Horner's scheme.
inline void taylor(const double * a, double x, std::array<double, kMotions> & found)
{
  found.fill(0.0);
  for (std::size_t i = kCoefficients; i-- > 0; ) {
    for (std::size_t k = kMotions; k-- > 1; ) {
      found[k] = found[k] * x + found[k - 1];
    }
    found[0] = found[0] * x + a[i];
  }
}

/// Coefficients (10) of the polynomial in x from 0 to 1 with Taylor coefficients at both ends.
///
/// With the five known at 0, the rest is x^5 s(x), and s is known by its coefficients at 1:
/// those of (what is missing at 1) times (1 + (x - 1))^-5.
inline void connect(
  const std::array<double, kMotions> & from, const std::array<double, kMotions> & to, double * a)
{
  std::copy(from.begin(), from.end(), a);
  std::fill(a + kMotions, a + kCoefficients, 0.0);
  std::array<double, kMotions> missing, s{};
  taylor(a, 1.0, missing);
  for (std::size_t k = 0; k < kMotions; ++k) {
    missing[k] = to[k] - missing[k];
    double factor = 1.0;  // (-1)^i binomial(4 + i, i)
    for (std::size_t i = 0; k + i < kMotions; ++i) {
      s[k + i] += factor * missing[k];
      factor *= -static_cast<double>(kMotions + i) / static_cast<double>(i + 1);
    }
  }
  // From powers of x - 1 to those of x.
  for (std::size_t m = kMotions; m-- > 0; ) {
    for (std::size_t i = kMotions - 1; i > 0; --i) {
      a[kMotions + i] = a[kMotions + i - 1] - a[kMotions + i];
    }
    a[kMotions] = s[m] - a[kMotions];
  }
}

/// Samples of a motion, without a copy.
struct Samples
{
  const std::vector<double> & times;                              ///< N of them [s].
  std::array<const std::vector<double> *, kMotions> values;       ///< N * n, as they come.
  std::size_t n;                                                  ///< Of the joints.

  /// Position or derivative k of column j of sample i.
  double operator()(std::size_t k, std::size_t i, std::size_t j) const
  {
    return (*values[k])[i * n + j];
  }

  /// Coefficients (10) of the polynomial from sample i to sample `to` of column j.
  void connect(std::size_t i, std::size_t to, std::size_t j, double * a) const
  {
    std::array<double, kMotions> begin, end;
    double scale = 1.0;
    for (std::size_t k = 0; k < kMotions; ++k) {
      begin[k] = scale * (*this)(k, i, j);
      end[k] = scale * (*this)(k, to, j);
      scale *= (times[to] - times[i]) / static_cast<double>(k + 1);
    }
    hodyn_controllers::connect(begin, end, a);
  }
};

/// Which samples a motion goes through, by the digits of their numbers.
class Digits
{
public:
  explicit Digits(const Samples & samples)
  : samples_(samples), n_(samples.n), delta_(rounding()) {}

  /// All samples, or those of them that say more than their rounding.
  std::vector<std::size_t> kept() const
  {
    std::vector<std::size_t> all(samples_.times.size());
    std::iota(all.begin(), all.end(), 0);
    if (!may_matter()) {
      return all;
    }
    const Table snap = snaps(all);
    const bool doubtful = explained(all, snap, kDoubt) < n_;
    if (!doubtful && !is_wild(snap)) {
      return all;
    }
    std::vector<std::size_t> fewer = fewest();
    const Table less = snaps(fewer);
    const bool is_better =
      explained(all, snap, 1.0) < n_ && explained(fewer, less, 1.0) == n_;
    return is_better || spares(snap, fewer, less) ? fewer : all;
  }

  /// Why a motion through these samples would follow the rounding of their numbers; empty: not.
  std::string fault(
    const std::vector<std::size_t> & kept, const std::vector<std::string> & names) const
  {
    if (!may_matter()) {
      return "";
    }
    const Table snap = snaps(kept);
    const std::size_t j = explained(kept, snap, 1.0);
    if (j == n_) {
      return "";
    }
    const std::size_t i = largest(snap, j);
    char text[400];
    std::snprintf(
      text, sizeof(text),
      "its samples are too dense for their digits: between %.6g s and %.6g s the snap of %s is "
      "%.2g rad/s^4 or m/s^4, which numbers that are rounded to about %.1g make by themselves; "
      "send more digits or fewer samples", samples_.times[kept[i]], samples_.times[kept[i + 1]],
      names[j].c_str(), snap[i * n_ + j], 2.0 * delta_[j]);
    return text;
  }

private:
  /// A value for each piece between samples and each column.
  using Table = std::vector<double>;

  /// Whether rounding makes any snap that counts.
  bool may_matter() const
  {
    for (std::size_t i = 0; i + 1 < samples_.times.size(); ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        if (noise(i, i + 1, j) > kSlight) {
          return true;
        }
      }
    }
    return false;
  }

  /// Largest rounding error of the positions of each column, by their digits.
  ///
  /// Numbers that have a fixed count of decimals, or of digits, in rad or in degrees, or that fit
  /// into single precision, are taken for rounded to that, all others for exact ones.
  std::vector<double> rounding() const
  {
    std::vector<double> found(n_), column(samples_.times.size() - 1);
    std::vector<bool> many(n_);
    double coarsest = 0.0;
    for (std::size_t j = 0; j < n_; ++j) {
      for (std::size_t i = 0; i < column.size(); ++i) {
        column[i] = samples_(0, i + 1, j);
      }
      const std::vector<double> sizes = distinct(column);
      found[j] = std::max(4096.0 * kUnit * sizes.back(), single(sizes));
      many[j] = sizes.size() >= kMany;
      const int fewest = many[j] ? 0 : kFewestDecimals;
      found[j] = std::max(found[j], fixed(sizes, fewest));
      // Whole turns that were added to what an encoder shows leave a joint no fixed decimals.
      for (const bool is_signed : {true, false}) {
        if (sizes.back() > 0.5 * kTurn) {
          const std::vector<double> within = distinct(without_turns(column, is_signed));
          found[j] = std::max(found[j], fixed(within, fewest));
        }
      }
      coarsest = many[j] ? std::max(coarsest, found[j]) : coarsest;
    }
    // A joint that hardly moves does not say its digits, but the others do.
    for (std::size_t j = 0; j < n_; ++j) {
      found[j] = many[j] ? found[j] : std::max(found[j], coarsest);
    }
    return found;
  }

  /// Absolute values, each once, the largest last.
  static std::vector<double> distinct(std::vector<double> values)
  {
    for (double & value : values) {
      value = std::abs(value);
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  /// Angles from minus a half turn to a half turn, or from zero to a turn.
  static std::vector<double> without_turns(std::vector<double> angles, bool is_signed)
  {
    const double digits = std::pow(10.0, kMostDecimals);
    for (double & angle : angles) {
      const double turns = angle / kTurn;
      angle -= kTurn * (is_signed ? std::nearbyint(turns) : std::floor(turns));
      angle = std::nearbyint(digits * angle) / digits;
    }
    return angles;
  }

  /// Rounding of numbers that all fit into single precision; zero: not all do.
  static double single(const std::vector<double> & sizes)
  {
    const auto fits = [](double x) {return static_cast<double>(static_cast<float>(x)) == x;};
    constexpr double kSingle = 0.5 * std::numeric_limits<float>::epsilon();
    return std::all_of(sizes.begin(), sizes.end(), fits) ? kSingle * sizes.back() : 0.0;
  }

  /// Rounding of numbers with a fixed count of decimals, in rad or degrees; zero: they have none.
  static double fixed(const std::vector<double> & sizes, int fewest)
  {
    // Numbers with a fixed count of digits have the fewest decimals where they are largest.
    const std::size_t top = std::min(sizes.size(), std::max<std::size_t>(10, sizes.size() / 10));
    double found = 0.0;
    for (const double unit : {1.0, 360.0 / kTurn}) {
      double digits = 1.0;
      for (int decimals = 0; decimals <= kMostDecimals; ++decimals, digits *= 10.0) {
        const auto fits = [&](double x) {
            const double scaled = digits * (unit * x);
            return std::abs(scaled - std::nearbyint(scaled)) <= 4.0 * kUnit * scaled;
          };
        if (std::all_of(sizes.end() - static_cast<std::ptrdiff_t>(top), sizes.end(), fits)) {
          found = decimals >= fewest ? std::max(found, 0.5 / (digits * unit)) : found;
          break;
        }
      }
    }
    return found;
  }

  /// Snap that rounding makes from a sample to another one.
  double noise(std::size_t from, std::size_t to, std::size_t j) const
  {
    const double h = samples_.times[to] - samples_.times[from];
    return kGain * delta_[j] / (h * h * h * h);
  }

  /// Largest snap of each piece between samples that are kept.
  Table snaps(const std::vector<std::size_t> & kept) const
  {
    Table snap((kept.size() - 1) * n_, 0.0);
    std::array<double, kCoefficients> a;
    std::array<double, kMotions> found;
    for (std::size_t i = 0; i + 1 < kept.size(); ++i) {
      const double h = samples_.times[kept[i + 1]] - samples_.times[kept[i]];
      for (std::size_t j = 0; j < n_; ++j) {
        samples_.connect(kept[i], kept[i + 1], j, a.data());
        double & most = snap[i * n_ + j];
        for (const double x : {0.0, 0.2, 0.5, 0.8, 1.0}) {
          taylor(a.data(), x, found);
          most = std::max(most, 24.0 * std::abs(found[4]) / (h * h * h * h));
        }
      }
    }
    return snap;
  }

  /// Piece with the largest snap of a column.
  std::size_t largest(const Table & snap, std::size_t j) const
  {
    std::size_t found = 0;
    for (std::size_t i = 0; i < snap.size() / n_; ++i) {
      found = snap[i * n_ + j] > snap[found * n_ + j] ? i : found;
    }
    return found;
  }

  /// First column whose largest snap is harmful and no more than what rounding makes, or n.
  ///
  /// What a motion asks for at few of the places at which it moves, as where its acceleration
  /// jumps, is no rounding, nor is what samples confirm that are left out.
  std::size_t explained(
    const std::vector<std::size_t> & kept, const Table & snap, double times) const
  {
    for (std::size_t j = 0; j < n_; ++j) {
      const auto made = [&](std::size_t i) {
          const bool is_short = kept[i + 1] - kept[i] < kLeastStride;
          return is_short ? times * noise(kept[i], kept[i + 1], j) : 0.0;
        };
      const std::size_t most = largest(snap, j);
      const double value = snap[most * n_ + j];
      if (!(value > kHarmful && value <= made(most))) {
        continue;
      }
      std::vector<double> others;
      for (std::size_t i = 0; i + 1 < kept.size(); ++i) {
        const bool moves = samples_(0, kept[i], j) != samples_(0, kept[i + 1], j);
        if (made(i) > kHarmful && (moves || i == most)) {
          others.push_back(snap[i * n_ + j]);
        }
      }
      const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
      std::nth_element(others.begin(), middle, others.end());
      if (value <= kSpread * *middle) {
        return j;
      }
    }
    return n_;
  }

  /// Whether there is more snap than where an acceleration jumps, by that through fewer samples.
  bool is_wild(const Table & snap) const
  {
    const std::size_t last = samples_.times.size() - 1;
    const std::size_t stride = std::min<std::size_t>(kStride, last / 2);
    if (stride < kLeastStride) {
      return false;
    }
    const std::size_t pieces = (last + stride / 2) / stride;
    std::vector<std::size_t> few;
    for (std::size_t m = 0; m <= pieces; ++m) {
      few.push_back(m * last / pieces);
    }
    return exceeds(snap, snaps(few), static_cast<double>(stride * stride));
  }

  /// Whether a column has so many times more snap than it has elsewhere.
  bool exceeds(const Table & snap, const Table & other, double factor) const
  {
    for (std::size_t j = 0; j < n_; ++j) {
      const double usual = factor * other[largest(other, j) * n_ + j];
      if (snap[largest(snap, j) * n_ + j] > std::max(usual, kSlight)) {
        return true;
      }
    }
    return false;
  }

  /// Whether fewer samples have far less snap where others are left out.
  bool spares(const Table & snap, const std::vector<std::size_t> & fewer, const Table & less) const
  {
    Table before(snap.size(), 0.0);
    for (std::size_t m = 0; m + 1 < fewer.size(); ++m) {
      if (fewer[m + 1] - fewer[m] >= kLeastStride) {
        std::copy(
          snap.begin() + static_cast<std::ptrdiff_t>(fewer[m] * n_),
          snap.begin() + static_cast<std::ptrdiff_t>(fewer[m + 1] * n_),
          before.begin() + static_cast<std::ptrdiff_t>(fewer[m] * n_));
      }
    }
    return exceeds(before, less, kLess);
  }

  /// Few samples between which the motion meets all others to within their rounding.
  ///
  /// Pieces in which a sample is missed are halved.
  std::vector<std::size_t> fewest() const
  {
    const auto & times = samples_.times;
    std::vector<double> miss(n_);
    for (std::size_t j = 0; j < n_; ++j) {
      double fastest = 0.0;
      for (std::size_t i = 0; i + 1 < times.size(); ++i) {
        const double step = std::abs(samples_(0, i + 1, j) - samples_(0, i, j));
        fastest = std::max(fastest, step / (times[i + 1] - times[i]));
      }
      miss[j] = std::min(kRoundings * delta_[j] + kResolution * fastest, kLargestMiss);
    }
    std::vector<std::size_t> kept{0}, ends{times.size() - 1};
    while (!ends.empty()) {
      const std::size_t from = kept.back(), to = ends.back();
      if (meets(from, to, miss)) {
        kept.push_back(to);
        ends.pop_back();
      } else {
        ends.push_back((from + to) / 2);
      }
    }
    return kept;
  }

  /// Whether the polynomials from a sample to another one meet all in between.
  bool meets(std::size_t from, std::size_t to, const std::vector<double> & miss) const
  {
    std::array<double, kCoefficients> a;
    const double begin = samples_.times[from], h = samples_.times[to] - begin;
    for (std::size_t j = 0; j < n_; ++j) {
      samples_.connect(from, to, j, a.data());
      for (std::size_t i = from + 1; i < to; ++i) {
        const double x = (samples_.times[i] - begin) / h;
        double position = 0.0;
        for (std::size_t m = kCoefficients; m-- > 0; ) {
          position = position * x + a[m];
        }
        if (!(std::abs(position - samples_(0, i, j)) <= miss[j])) {
          return false;
        }
      }
    }
    return true;
  }

  // As in hodyn_ros/trajectory/rounding.py, which says why; with jerk and snap the gain is less.
  static constexpr double kGain = 400.0, kRoundings = 4.0, kResolution = 1e-9;
  static constexpr double kLargestMiss = 1e-3, kSlight = 1.0, kHarmful = 1e4;
  static constexpr double kDoubt = 4.0, kSpread = 300.0, kLess = 4.0;
  static constexpr std::size_t kStride = 8, kLeastStride = 4, kMany = 30;
  static constexpr int kMostDecimals = 12, kFewestDecimals = 3;
  static constexpr double kUnit = std::numeric_limits<double>::epsilon();
  static constexpr double kTurn = 6.283185307179586;
  const Samples samples_;
  const std::size_t n_;
  const std::vector<double> delta_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MOTION_SAMPLES_HPP_
