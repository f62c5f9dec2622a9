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
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "hodyn_controllers/messages.hpp"

namespace hodyn_controllers
{

constexpr Index kMotions = 5;  ///< Position and its first four time derivatives.

constexpr Index kCoefficients = 2 * kMotions;  ///< Of a polynomial of degree 9.

using Taylor = std::array<double, kMotions>;  ///< Taylor coefficients 0 to 4.

/// Taylor coefficients of a polynomial of degree 9 at x, by Horner's scheme.
inline Taylor taylor(const double * a, double x)
{
  Taylor found{};
  for (Index i = kCoefficients; i-- > 0; ) {
    for (Index k = kMotions; k-- > 1; ) {
      found[k] = found[k] * x + found[k - 1];
    }
    found[0] = found[0] * x + a[i];
  }
  return found;
}

/// Coefficients (10) of the polynomial in x from 0 to 1 with Taylor coefficients at both ends.
///
/// With the five known at 0, the rest is x^5 s(x), and s has at 1 the Taylor coefficients of (what
/// is missing at 1) times (1 + (x - 1))^-5.
inline void connect(const Taylor & from, const Taylor & to, double * a)
{
  static constexpr double rest[kMotions][kMotions] = {
    {126.0, -56.0, 21.0, -6.0, 1.0}, {-420.0, 196.0, -77.0, 23.0, -4.0},
    {540.0, -260.0, 106.0, -33.0, 6.0}, {-315.0, 155.0, -65.0, 21.0, -4.0},
    {70.0, -35.0, 15.0, -5.0, 1.0}};
  std::fill(std::copy(from.begin(), from.end(), a), a + kCoefficients, 0.0);
  const Taylor reached = taylor(a, 1.0);
  for (Index m = 0; m < kMotions; ++m) {
    for (Index k = 0; k < kMotions; ++k) {
      a[kMotions + m] += rest[m][k] * (to[k] - reached[k]);
    }
  }
}

/// Samples of a motion, without a copy.
struct Samples
{
  template<typename Message>
  explicit Samples(const Message & message)
  : times(message.time_from_start), n(message.joint_names.size()),
    values{&message.position, &message.velocity, &message.acceleration, &message.jerk,
      &message.snap} {}

  /// Position or derivative k of column j of sample i.
  double operator()(Index k, Index i, Index j) const {return (*values[k])[i * n + j];}

  /// Coefficients (10) of the polynomial from sample i to sample `to` of column j.
  void connect(Index i, Index to, Index j, double * a) const
  {
    Taylor begin, end;
    double scale = 1.0;
    for (Index k = 0; k < kMotions; ++k) {
      begin[k] = scale * (*this)(k, i, j);
      end[k] = scale * (*this)(k, to, j);
      scale *= (times[to] - times[i]) / static_cast<double>(k + 1);
    }
    hodyn_controllers::connect(begin, end, a);
  }

  const Values & times;                               ///< N of them [s].
  Index n;                                            ///< Of the joints.
  std::array<const Values *, kMotions> values;        ///< N * n, as they come.
};

/// Which samples a motion goes through, by the digits of their numbers.
class Digits
{
public:
  explicit Digits(const Samples & samples)
  : samples_(samples), times_(samples.times), n_(samples.n), delta_(rounding()) {}

  /// All samples, or those of them that say more than their rounding.
  Indices kept() const
  {
    Indices all(times_.size());
    std::iota(all.begin(), all.end(), 0);
    const Table snap = snaps(all);
    if (explained(all, snap, kDoubt) == n_ && !is_wild(snap)) {
      return all;
    }
    const Indices fewer = fewest();
    const Table less = snaps(fewer);
    const bool is_better = explained(all, snap) < n_ && explained(fewer, less) == n_;
    return is_better || spares(snap, fewer, less) ? fewer : all;
  }

  /// Why a motion through these samples would follow the rounding of their numbers; empty: not.
  std::string fault(const Indices & kept, const Names & names) const
  {
    const Table snap = snaps(kept);
    const Index j = explained(kept, snap);
    if (j == n_) {
      return "";
    }
    const Index i = place_of_most(snap[j]);
    char text[400];
    std::snprintf(
      text, sizeof(text),
      "its samples are too dense for their digits: between %.6g s and %.6g s the snap of %s is "
      "%.2g rad/s^4 or m/s^4, which numbers that are rounded to about %.1g make by themselves; "
      "send more digits or fewer samples", times_[kept[i]], times_[kept[i + 1]],
      names[j].c_str(), snap[j][i], 2.0 * delta_[j]);
    return text;
  }

private:
  /// For each column a value for each piece between samples.
  using Table = std::vector<Values>;

  /// Largest rounding error of the positions of each column, by their digits.
  ///
  /// Numbers that have a fixed count of decimals, or of digits, in rad or in degrees, or that fit
  /// into single precision, are taken for rounded to that, all others for exact ones.
  Values rounding() const
  {
    Values found(n_), column(times_.size() - 1);
    std::vector<bool> many(n_);
    double coarsest = 0.0;
    for (Index j = 0; j < n_; ++j) {
      for (Index i = 0; i < column.size(); ++i) {
        column[i] = samples_(0, i + 1, j);
      }
      const Values sizes = distinct(column);
      many[j] = sizes.size() >= kMany;
      const int fewest = many[j] ? 0 : kFewestDecimals;
      found[j] = std::max({4096.0 * kUnit * sizes.back(), single(sizes), fixed(sizes, fewest)});
      // Whole turns that were added to what an encoder shows leave a joint no fixed decimals.
      for (const double lowest : {-0.5 * kTurn, 0.0}) {
        if (sizes.back() > 0.5 * kTurn) {
          found[j] = std::max(found[j], fixed(distinct(turned(column, lowest)), fewest));
        }
      }
      coarsest = many[j] ? std::max(coarsest, found[j]) : coarsest;
    }
    // A joint that hardly moves does not say its digits, but the others do.
    for (Index j = 0; j < n_; ++j) {
      found[j] = many[j] ? found[j] : std::max(found[j], coarsest);
    }
    return found;
  }

  /// Absolute values, each once, the largest last.
  static Values distinct(Values values)
  {
    for (double & value : values) {
      value = std::abs(value);
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  /// Angles without whole turns: from the lowest one to a turn more.
  static Values turned(Values angles, double lowest)
  {
    const double digits = std::pow(10.0, kMostDecimals);
    for (double & angle : angles) {
      angle -= kTurn * std::floor((angle - lowest) / kTurn);
      angle = std::nearbyint(digits * angle) / digits;
    }
    return angles;
  }

  /// Rounding of numbers that all fit into single precision; zero: not all do.
  static double single(const Values & sizes)
  {
    const auto fits = [](double x) {return static_cast<float>(x) == x;};
    constexpr double kSingle = 0.5 * std::numeric_limits<float>::epsilon();
    return std::all_of(sizes.begin(), sizes.end(), fits) ? kSingle * sizes.back() : 0.0;
  }

  /// Rounding of numbers with a fixed count of decimals, in rad or degrees; zero: they have none.
  static double fixed(const Values & sizes, int fewest)
  {
    // Numbers with a fixed count of digits have the fewest decimals where they are largest.
    const Index top = std::min(sizes.size(), std::max<Index>(10, sizes.size() / 10));
    double found = 0.0;
    for (const double unit : {1.0, 360.0 / kTurn}) {
      for (int decimals = 0; decimals <= kMostDecimals; ++decimals) {
        const double scale = std::pow(10.0, decimals) * unit;
        const auto fits = [&](double x) {
            return std::abs(scale * x - std::nearbyint(scale * x)) <= 4.0 * kUnit * scale * x;
          };
        if (std::all_of(sizes.rbegin(), sizes.rbegin() + top, fits)) {
          found = decimals >= fewest ? std::max(found, 0.5 / scale) : found;
          break;
        }
      }
    }
    return found;
  }

  /// Snap that rounding makes from a sample to another one.
  double noise(Index from, Index to, Index j) const
  {
    return kGain * delta_[j] / std::pow(times_[to] - times_[from], 4);
  }

  /// Largest snap of each piece between samples that are kept.
  Table snaps(const Indices & kept) const
  {
    Table snap(n_, Values(kept.size() - 1));
    double a[kCoefficients];
    for (Index j = 0; j < n_; ++j) {
      for (Index i = 0; i + 1 < kept.size(); ++i) {
        samples_.connect(kept[i], kept[i + 1], j, a);
        const double factor = 24.0 / std::pow(times_[kept[i + 1]] - times_[kept[i]], 4);
        for (const double x : {0.0, 0.2, 0.5, 0.8, 1.0}) {
          snap[j][i] = std::max(snap[j][i], factor * std::abs(taylor(a, x)[4]));
        }
      }
    }
    return snap;
  }

  static Index place_of_most(const Values & values)
  {
    return std::max_element(values.begin(), values.end()) - values.begin();
  }

  /// First column whose largest snap is harmful and no more than what rounding makes, or n.
  ///
  /// What a motion asks for at few of the places at which it moves, as where its acceleration
  /// jumps, is no rounding, nor is what samples confirm that are left out, or that are kept where
  /// a miss of all their rounding would let them be left out.
  Index explained(const Indices & kept, const Table & snap, double times = 1.0) const
  {
    for (Index j = 0; j < n_; ++j) {
      if (kept.size() < times_.size() && kRoundings * delta_[j] <= kLargestMiss) {
        continue;
      }
      const auto made = [&](Index i) {
          const bool is_short = kept[i + 1] - kept[i] < kLeastStride;
          return is_short ? times * noise(kept[i], kept[i + 1], j) : 0.0;
        };
      const Index most = place_of_most(snap[j]);
      const double value = snap[j][most];
      if (!(value > kHarmful && value <= made(most))) {
        continue;
      }
      Values others;
      for (Index i = 0; i + 1 < kept.size(); ++i) {
        const bool moves = samples_(0, kept[i], j) != samples_(0, kept[i + 1], j);
        if (made(i) > kHarmful && (moves || i == most)) {
          others.push_back(snap[j][i]);
        }
      }
      const auto middle = others.begin() + others.size() / 2;
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
    const Index last = times_.size() - 1, stride = std::min(kStride, last / 2);
    bool is_noisy = false;
    for (Index i = 0; i < last; ++i) {
      for (Index j = 0; j < n_; ++j) {
        is_noisy = is_noisy || noise(i, i + 1, j) > kSlight;
      }
    }
    if (stride < kLeastStride || !is_noisy) {
      return false;
    }
    const Index pieces = (last + stride / 2) / stride;
    Indices few;
    for (Index m = 0; m <= pieces; ++m) {
      few.push_back(m * last / pieces);
    }
    return exceeds(snap, snaps(few), static_cast<double>(stride * stride));
  }

  /// Whether a column has so many times more snap than it has elsewhere.
  bool exceeds(const Table & snap, const Table & other, double factor) const
  {
    const auto most = [](const Values & values) {return values[place_of_most(values)];};
    for (Index j = 0; j < n_; ++j) {
      if (most(snap[j]) > std::max(factor * most(other[j]), kSlight)) {
        return true;
      }
    }
    return false;
  }

  /// Whether fewer samples have far less snap where others are left out.
  bool spares(Table snap, const Indices & fewer, const Table & less) const
  {
    for (Index m = 0; m + 1 < fewer.size(); ++m) {
      for (Values & of_column : snap) {
        if (fewer[m + 1] - fewer[m] < kLeastStride) {
          std::fill(&of_column[fewer[m]], &of_column[fewer[m + 1] - 1] + 1, 0.0);
        }
      }
    }
    return exceeds(snap, less, kLess);
  }

  /// Few samples between which the motion meets all others to within their rounding.
  ///
  /// Pieces in which a sample is missed are halved.
  Indices fewest() const
  {
    Values miss(n_);
    for (Index j = 0; j < n_; ++j) {
      double fastest = 0.0;
      for (Index i = 0; i + 1 < times_.size(); ++i) {
        const double step = std::abs(samples_(0, i + 1, j) - samples_(0, i, j));
        fastest = std::max(fastest, step / (times_[i + 1] - times_[i]));
      }
      miss[j] = std::min(kRoundings * delta_[j] + kResolution * fastest, kLargestMiss);
    }
    Indices kept{0}, ends{times_.size() - 1};
    while (!ends.empty()) {
      if (meets(kept.back(), ends.back(), miss)) {
        kept.push_back(ends.back());
        ends.pop_back();
      } else {
        ends.push_back((kept.back() + ends.back()) / 2);
      }
    }
    return kept;
  }

  /// Whether the polynomials from a sample to another one meet all in between.
  bool meets(Index from, Index to, const Values & miss) const
  {
    double a[kCoefficients];
    for (Index j = 0; j < n_; ++j) {
      samples_.connect(from, to, j, a);
      for (Index i = from + 1; i < to; ++i) {
        const double x = (times_[i] - times_[from]) / (times_[to] - times_[from]);
        if (!(std::abs(taylor(a, x)[0] - samples_(0, i, j)) <= miss[j])) {
          return false;
        }
      }
    }
    return true;
  }

  // As in hodyn_ros/trajectory/rounding.py, which says why; with jerk and snap the gain is less.
  static constexpr double kGain = 400.0, kRoundings = 4.0, kResolution = 1e-9;
  static constexpr double kLargestMiss = 2e-3, kSlight = 1.0, kHarmful = 1e4;
  static constexpr double kDoubt = 4.0, kSpread = 300.0, kLess = 4.0;
  static constexpr Index kStride = 8, kLeastStride = 4, kMany = 30;
  static constexpr int kMostDecimals = 12, kFewestDecimals = 3;
  static constexpr double kUnit = std::numeric_limits<double>::epsilon();
  static constexpr double kTurn = 6.283185307179586;
  const Samples samples_;
  const Values & times_;
  const Index n_;
  const Values delta_;
};

}  // namespace hodyn_controllers

#endif  // HODYN_CONTROLLERS__MOTION_SAMPLES_HPP_
