// Whole iterations of TL-NMF and of joint diagonalization for small problems, one restart at a time. float64 alone.
//
// Arrays are as in majorization_equalization.hpp; virtual realizations are v (R, M, N) and, transformed, X (R, M, N);
// frames that come in and go out are (M, R N). Gradients are made of the cross power, the sums over realizations of
// X_a X_b with a row per pair a < b, which costs as much as one gradient and serves that of any model. The searches are
// those of nonneg.transforms.rotations.line_search, for one line at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "majorization_equalization.hpp"
#include "pool.hpp"
#include "rotations.hpp"

namespace nonneg {

constexpr double infinity = std::numeric_limits<double>::infinity(), rounding = std::numeric_limits<double>::epsilon();

// Where a bracket [low, high] of a line search is cut: by a cubic, a quadratic, or in half.
struct Bracket {
  double low, low_value, low_slope, high, high_value, last, last_value;

  double cut(bool first) const {
    const double b = high - low, yb = high_value - low_value - low_slope * b;
    if (!first) {
      const double c = last - low, yc = last_value - low_value - low_slope * c;
      const double denominator = (b * c) * (b * c) * (b - c);
      const double cubed = (c * c * yb - b * b * yc) / denominator,
                   squared = (b * b * b * yc - c * c * c * yb) / denominator;
      const double root = squared * squared - 3 * cubed * low_slope;
      const double step = low + (-squared + std::sqrt(root)) / (3 * cubed);
      if (root >= 0 && inside(step, 0.2 * b)) return step;
    }
    const double step = low - low_slope * b * b / (2 * yb);
    return inside(step, 0.1 * b) ? step : low + 0.5 * b;
  }

 private:
  bool inside(double step, double margin) const {
    return std::isfinite(step) && std::min(low, high) + margin <= step && step <= std::max(low, high) - margin;
  }
};

// One restart: its transform, transformed frames and their moments, in three slots of which a search needs two at once.
class TransformSearch {
 public:
  TransformSearch(const double* v, std::int64_t n_realizations, std::int64_t m, std::int64_t n, double eps0, bool learning,
                  std::int64_t max_trials)
      : v_(v), n_realizations_(n_realizations), m_(m), n_(n), max_trials_(max_trials), eps0_(eps0), learning_(learning),
        rotations_(m), rotation_(m * m), E_(m * m), gradient_(m * m), raised_(m * n) {
    for (int slot = 0; slot < 3; ++slot) {
      Point& point = points_[slot];
      point.transform.resize(m * m);
      point.frames.resize(n_realizations * m * n);
      point.power.resize(m * n);
      point.cross.resize(m * (m - 1) / 2 * n);
    }
  }

  struct Point {
    std::vector<double> transform, frames, power, cross;
  };
  const Point& point() const { return points_[current_]; }

  // Begin at a transform whose transformed frames have these moments, or null to compute them.
  void begin(const double* transform, const double* frames, const double* power, const double* cross) {
    current_ = 0, moved = false;
    Point& point = points_[0];
    std::copy_n(transform, point.transform.size(), point.transform.data());
    if (power) {
      std::copy_n(power, point.power.size(), point.power.data());
      std::copy_n(cross, point.cross.size(), point.cross.data());
      return;
    }
    for (std::int64_t a = 0; a < m_; ++a)
      for (std::int64_t r = 0; r < n_realizations_; ++r)
        std::copy_n(frames + (a * n_realizations_ + r) * n_, n_, &point.frames[(r * m_ + a) * n_]);
    set_power(point);
    set_cross_power(point);
  }

  // Put the transformed frames where they are wanted as (M, R N).
  void frames(double* out) const {
    for (std::int64_t a = 0; a < m_; ++a)
      for (std::int64_t r = 0; r < n_realizations_; ++r)
        std::copy_n(&point().frames[(r * m_ + a) * n_], n_, out + (a * n_realizations_ + r) * n_);
  }

  // Rotate by quasi-Newton steps. `inverse` is that of the model; without learning it is workspace.
  void rotate(double* inverse, std::int64_t n_rotations) {
    norm = step = 0, succeeded = true;
    for (std::int64_t turn = 0; turn < n_rotations; ++turn) {
      if (!learning_ && moved) set_cross_power(points_[current_]);
      for (std::int64_t i = 0; i < m_ * n_; ++i) raised_[i] = point().power[i] + (learning_ ? 0.0 : eps0_);
      if (!learning_)
        for (std::int64_t i = 0; i < m_ * n_; ++i) inverse[i] = 1 / raised_[i];
      const double slope = set_direction(inverse);
      const double value = learning_ ? inner(raised_.data(), inverse, m_ * n_) : logs(raised_, 0.0);
      norm = std::sqrt(inner(gradient_.data(), gradient_.data(), m_ * m_)) / (2.0 * n_);
      learning_ ? search_wolfe(inverse, value, slope) : backtrack(value, slope);
      moved = moved || step > 0;
      if (!succeeded && step == 0) break;  // the same search would fail again
    }
  }

  bool moved = false, succeeded = true;
  double norm = 0, step = 0;  // of the last gradient and search

 private:
  // Wolfe's constants, and the decrease, in units of the value, that is rounding.
  static constexpr double c1 = 1e-4, c2 = 0.9, noise = 8 * rounding;

  // Room for the points, kept by a thread from one iteration to the next.
  static Point* room() {
    thread_local Point points[3];
    return points;
  }

  double logs(const std::vector<double>& x, double offset) const {
    return sum_of_logs(m_ * n_, [&](std::int64_t i) { return x[i] + offset; });
  }

  // V = sum over realizations of X_a^2
  void set_power(Point& point) const {
    const std::int64_t size = m_ * n_;
    double* V = point.power.data();
    for (std::int64_t i = 0; i < size; ++i) V[i] = point.frames[i] * point.frames[i];
    for (std::int64_t r = 1; r < n_realizations_; ++r) {
      const double* X = &point.frames[r * size];
      for (std::int64_t i = 0; i < size; ++i) V[i] += X[i] * X[i];
    }
  }

  // Sums over realizations of X_a X_b, a < b; three at once spare loads and stores.
  void set_cross_power(Point& point) const {
    const std::int64_t size = m_ * n_;
    double* out = point.cross.data();
    for (std::int64_t a = 0; a < m_; ++a)
      for (std::int64_t b = a + 1; b < m_; ++b, out += n_) {
        const double *x = &point.frames[a * n_], *y = &point.frames[b * n_];
        for (std::int64_t i = 0; i < n_; ++i) out[i] = x[i] * y[i];
        std::int64_t r = 1;
        for (; r + 3 <= n_realizations_; r += 3) {
          const double *x0 = x + r * size, *x1 = x0 + size, *x2 = x1 + size;
          const double *y0 = y + r * size, *y1 = y0 + size, *y2 = y1 + size;
          for (std::int64_t i = 0; i < n_; ++i) out[i] += x0[i] * y0[i] + x1[i] * y1[i] + x2[i] * y2[i];
        }
        for (; r < n_realizations_; ++r)
          for (std::int64_t i = 0; i < n_; ++i) out[i] += x[r * size + i] * y[r * size + i];
      }
  }

  // G_ab = sum of X_a X_b (inverse_a - inverse_b), which is skew.
  void set_gradient(const Point& point, const double* inverse) {
    const double* row = point.cross.data();
    for (std::int64_t a = 0; a < m_; ++a)
      for (std::int64_t b = a + 1; b < m_; ++b, row += n_) {
        const double *of_a = inverse + a * n_, *of_b = inverse + b * n_;
        double total = 0;
        for (std::int64_t i = 0; i < n_; ++i) total += (of_a[i] - of_b[i]) * row[i];
        gradient_[a * m_ + b] = total, gradient_[b * m_ + a] = -total;
      }
  }

  // E = -gradient / curvature, entry by entry; returns the slope along it.
  double set_direction(const double* inverse) {
    set_gradient(point(), inverse);
    // Without learning a curvature below this is rounding.
    const double constant = learning_ ? 0 : 2.0 * n_, least = learning_ ? 0 : 2 * noise * n_;
    for (std::int64_t a = 0; a < m_; ++a)
      for (std::int64_t b = a + 1; b < m_; ++b) {
        const double *V_a = &raised_[a * n_], *V_b = &raised_[b * n_], *of_a = inverse + a * n_, *of_b = inverse + b * n_;
        double total = 0;
        for (std::int64_t i = 0; i < n_; ++i) total += V_b[i] * of_a[i] + V_a[i] * of_b[i];
        const double curvature = total - constant, entry = -gradient_[a * m_ + b] / curvature;
        E_[a * m_ + b] = curvature > least ? entry : 0;
        E_[b * m_ + a] = -E_[a * m_ + b];
      }
    return inner(gradient_.data(), E_.data(), m_ * m_);
  }

  // The point of a step along E, in a slot that holds neither the current point nor the best one.
  int move(double trial, int best) {
    int slot = 0;
    while (slot == current_ || slot == best) ++slot;
    Point& point = points_[slot];
    learning_ ? rotations_.exponential(E_.data(), trial, rotation_.data())
              : rotations_.polar(E_.data(), trial, rotation_.data());
    multiply_small(rotation_.data(), points_[current_].transform.data(), point.transform.data(), m_, m_, m_);
    for (std::int64_t r = 0; r < n_realizations_; ++r)
      multiply_small(point.transform.data(), v_ + r * m_ * n_, &point.frames[r * m_ * n_], m_, m_, n_);
    set_power(point);
    return slot;
  }

  void finish(int best, double taken, bool good) { current_ = best, step = taken, succeeded = good; }

  // Halve the step until the sum of log(power + eps0) decreases.
  void backtrack(double value, double slope) {
    if (!(slope < 0)) return finish(current_, 0, true);
    double trial = 1;
    for (std::int64_t turn = 0; turn < max_trials_; ++turn, trial *= 0.5) {
      const int slot = move(trial, current_);
      if (logs(points_[slot].power, eps0_) < value) return finish(slot, trial, true);
      if (-trial * slope <= noise * std::abs(value)) return finish(current_, 0, true);  // smaller steps promise less
    }
    finish(current_, 0, false);
  }

  // A step that meets the strong Wolfe conditions for the sum of the power times `inverse`.
  void search_wolfe(const double* inverse, double value, double slope) {
    if (!(slope < 0)) return finish(current_, 0, true);
    Bracket bracket{0, value, slope, infinity, infinity, 0, value};
    int best = current_;
    double trial = 1, taken = 0;
    bool bracketed = false;
    for (std::int64_t turn = 0; turn < max_trials_; ++turn) {
      const int slot = move(trial, best);
      const double found = inner(points_[slot].power.data(), inverse, m_ * n_);
      // Written so that NaN counts as too high.
      const bool lower = found <= value + c1 * trial * slope && found < bracket.low_value;
      double found_slope = 0;
      bool turned = false, first = false;
      if (lower) {
        set_cross_power(points_[slot]);
        set_gradient(points_[slot], inverse);
        found_slope = inner(gradient_.data(), E_.data(), m_ * m_);
        best = slot, taken = trial;
        if (std::abs(found_slope) <= -c2 * slope) return finish(best, taken, true);
        turned = found_slope * (bracketed ? bracket.high - bracket.low : 1.0) >= 0;
      } else if (-trial * slope <= noise * std::abs(value)) {
        return finish(best, taken, true);  // smaller steps promise even less
      }
      if (!bracketed) {
        bracket.last = 0, bracket.last_value = value;
        first = turned || !lower;
      } else if (turned || !lower) {
        bracket.last = bracket.high, bracket.last_value = bracket.high_value;
      } else {
        bracket.last = bracket.low, bracket.last_value = bracket.low_value;
      }
      if (!lower) {
        bracket.high = trial, bracket.high_value = found;
      } else {
        if (turned) bracket.high = bracket.low, bracket.high_value = bracket.low_value;
        bracket.low = trial, bracket.low_value = found, bracket.low_slope = found_slope;
      }
      bracketed = bracketed || first;
      trial = bracketed ? bracket.cut(first) : 2 * trial;
    }
    finish(best, taken, false);
  }

  const double* v_;
  std::int64_t n_realizations_, m_, n_, max_trials_;
  double eps0_;
  bool learning_;
  int current_ = 0;
  Rotations rotations_;
  std::vector<double> rotation_, E_, gradient_, raised_;
  Point* points_ = room();
};

// An iteration of a batch of restarts. Without learning (joint diagonalization) there are no factors.
struct TransformStep {
  const double* v;
  std::int64_t batch, n_realizations, m, n, k;
  double eps0;
  std::int64_t n_nmf_updates, n_rotations, max_trials;
  // transforms, w and h are updated in place; power and cross are those of `frames`, or null.
  double *transforms, *w, *h;
  const double *frames, *power, *cross;
  double *new_frames, *new_power, *new_cross;  // the last two are null without learning
  double* measures;                            // C, L, I or L alone, norm of the gradient, step, success; a row each

  void run(int n_threads) const {
    Pool::instance().run(batch, n_threads, [&](std::int64_t p) { advance(p); });
  }

 private:
  void advance(std::int64_t p) const {
    const bool learning = w != nullptr;
    const std::int64_t size = m * n, pairs = m * (m - 1) / 2 * n;
    TransformSearch search(v, n_realizations, m, n, eps0, learning, max_trials);
    const double* old = frames + p * n_realizations * size;
    search.begin(transforms + p * m * m, old, power ? power + p * size : nullptr, cross ? cross + p * pairs : nullptr);
    std::vector<double> inverse(size);
    if (learning)
      MajorizationEqualization(m, n, k, eps0)
          .update(search.point().power.data(), w + p * m * k, h + p * k * n, n_nmf_updates, inverse.data());
    search.rotate(inverse.data(), n_rotations);
    const TransformSearch::Point& point = search.point();
    std::copy(point.transform.begin(), point.transform.end(), transforms + p * m * m);
    double* out = new_frames + p * n_realizations * size;
    if (search.moved) search.frames(out);
    else std::copy_n(old, n_realizations * size, out);
    double* row = measures + p;
    if (learning) {
      std::copy(point.power.begin(), point.power.end(), new_power + p * size);
      std::copy(point.cross.begin(), point.cross.end(), new_cross + p * pairs);
      objectives(point.power.data(), eps0, inverse.data(), size, row, batch);
      row += 3 * batch;
    } else {
      *row = likelihood(point.power.data(), eps0, size);
      row += batch;
    }
    row[0] = search.norm, row[batch] = search.step, row[2 * batch] = search.succeeded;
  }
};

inline void transform_step(const TransformStep& step, int n_threads) { step.run(n_threads); }

}  // namespace nonneg
