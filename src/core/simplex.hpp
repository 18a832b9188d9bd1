// Exact least squares over the probability simplex by block principal pivoting (Kim & Park 2011, Algorithm 1, with
// one equality).
//
// Minimizes 0.5 f G f' - c f' over f >= 0 with sum 1. The equations of a guessed support are solved for its components
// or, where fewer, for its zeros: `full` is the minimizer with free signs and sum 1, and `projector` is its derivative
// by c, so that the zeros' multipliers are a small system.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "pool.hpp"

namespace nonneg {

class SimplexPivoting {
 public:
  SimplexPivoting(const double* gram, const double* projector, std::int64_t k, std::int64_t max_pivots)
      : gram_(gram), projector_(projector), k_(k), max_pivots_(max_pivots), lower_(k * k), inverse_(k), first_(k),
        second_(k), x_(k), slope_(k), target_(k), step_(k), multiplier_(k), is_passive_(k), wrong_(k) {
    for (std::int64_t a = 0; a < k; ++a) largest_ = std::max(largest_, gram[a * k + a]);
  }

  // Replace a row, whose positive entries are the first guess, by the minimizer. Returns false, and leaves the row as
  // it is, where a system is singular or the exchanges do not end.
  template <class T>
  bool solve(T* row, const double* full, const T* cross) {
    for (std::int64_t a = 0; a < k_; ++a) target_[a] = cross[a], is_passive_[a] = row[a] > 0;
    if (!solve(full)) return false;
    std::copy(x_.begin(), x_.end(), row);
    return true;
  }

 private:
  bool solve(const double* full) {
    double scale = largest_;
    for (const double entry : target_) scale = std::max(scale, std::abs(entry));
    std::int64_t fewest = k_ + 1, patience = full_patience;
    for (std::int64_t pivot = 0; pivot < max_pivots_; ++pivot) {
      passive_.clear(), active_.clear();
      for (std::int64_t a = 0; a < k_; ++a) (is_passive_[a] ? passive_ : active_).push_back(a);
      if (passive_.empty()) {
        std::fill(is_passive_.begin(), is_passive_.end(), true);
        continue;
      }
      const bool by_zeros = active_.size() < passive_.size();
      if (!(by_zeros ? solve_zeros(full) : solve_support())) return false;
      std::int64_t n_wrong = 0, last = 0;
      for (std::int64_t a = 0; a < k_; ++a) {
        wrong_[a] = is_passive_[a] ? x_[a] < -tolerance : slope_[a] < -tolerance * scale;
        if (wrong_[a]) last = a, ++n_wrong;
      }
      if (n_wrong == 0) {
        if (by_zeros) refine();
        normalize();
        return true;
      }
      // All wrong components while that makes progress, else the last one, which always ends.
      const bool better = n_wrong < fewest, alone = !better && patience == 0;
      patience = better ? full_patience : std::max<std::int64_t>(patience - 1, 0);
      fewest = std::min(fewest, n_wrong);
      for (std::int64_t a = 0; a < k_; ++a)
        if (alone ? a == last : wrong_[a]) is_passive_[a] = !is_passive_[a];
    }
    return false;
  }

  // Exchanges of all wrong components that may bring no progress.
  static constexpr std::int64_t full_patience = 3;
  // Entries are at most one; gradients are compared with the terms they are sums of.
  static constexpr double tolerance = 1e-12;
  using Subset = std::vector<std::int64_t>;

  static double dot(const double* a, const double* b, std::int64_t n) {
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += a[i] * b[i];
    return total;
  }

  // Cholesky factor of the part of a matrix that belongs to a subset; false if it is singular.
  bool factor(const double* matrix, const Subset& subset) {
    for (std::size_t a = 0; a < subset.size(); ++a) {
      double* row = &lower_[a * k_];
      const double* matrix_a = matrix + subset[a] * k_;
      for (std::size_t b = 0; b < a; ++b) row[b] = (matrix_a[subset[b]] - dot(row, &lower_[b * k_], b)) * inverse_[b];
      const double pivot = matrix_a[subset[a]], rest = pivot - dot(row, row, a);
      if (!(rest > 1e-14 * pivot)) return false;
      inverse_[a] = 1 / std::sqrt(rest);
    }
    return true;
  }

  void solve_factored(std::vector<double>& values, std::size_t n) const {
    for (std::size_t a = 0; a < n; ++a) values[a] = (values[a] - dot(&lower_[a * k_], values.data(), a)) * inverse_[a];
    for (std::size_t a = n; a-- > 0;) {
      const double value = values[a] *= inverse_[a];
      for (std::size_t c = 0; c < a; ++c) values[c] -= lower_[a * k_ + c] * value;
    }
  }

  // x on the support, from G x = c + level with the level that makes the sum one.
  bool solve_support() {
    if (!factor(gram_, passive_)) return false;
    const std::size_t n = passive_.size();
    for (std::size_t a = 0; a < n; ++a) first_[a] = target_[passive_[a]], second_[a] = 1;
    solve_factored(first_, n);
    solve_factored(second_, n);
    double sum_first = 0, sum_second = 0;
    for (std::size_t a = 0; a < n; ++a) sum_first += first_[a], sum_second += second_[a];
    const double level = (1 - sum_first) / sum_second;
    std::fill(x_.begin(), x_.end(), 0.0);
    for (std::size_t a = 0; a < n; ++a) x_[passive_[a]] = first_[a] + level * second_[a];
    for (const std::int64_t b : active_) slope_[b] = dot(gram_ + b * k_, x_.data(), k_) - target_[b] - level;
    return true;
  }

  // The same from the equations of the zeros, whose multipliers are their slopes.
  bool solve_zeros(const double* full) {
    if (!factor(projector_, active_)) return false;
    std::copy(full, full + k_, x_.begin());
    set_zeros(x_);
    slope_ = multiplier_;
    return true;
  }

  // Force the active components of x to zero; `multiplier_` holds what does so.
  void set_zeros(std::vector<double>& x) {
    const std::size_t n = active_.size();
    for (std::size_t b = 0; b < n; ++b) second_[b] = -x[active_[b]];
    solve_factored(second_, n);
    std::fill(multiplier_.begin(), multiplier_.end(), 0.0);
    for (std::size_t b = 0; b < n; ++b) multiplier_[active_[b]] = second_[b];
    for (const std::int64_t a : passive_) x[a] += dot(projector_ + a * k_, multiplier_.data(), k_);
    for (const std::int64_t b : active_) x[b] = 0;
  }

  // One step of iterative refinement after `solve_zeros`, whose inverse may have lost digits.
  void refine() {
    std::fill(step_.begin(), step_.end(), 0.0);
    for (const std::int64_t a : passive_) {
      const double rest = target_[a] - dot(gram_ + a * k_, x_.data(), k_);  // the other entries of x are zero
      for (std::int64_t b = 0; b < k_; ++b) step_[b] += projector_[a * k_ + b] * rest;
    }
    set_zeros(step_);
    for (const std::int64_t a : passive_) x_[a] += step_[a];
  }

  void normalize() {
    double total = 0;
    for (double& entry : x_) {
      if (entry < 0) entry = 0;
      total += entry;
    }
    for (double& entry : x_) entry /= total;
  }

  const double *gram_, *projector_;
  std::int64_t k_, max_pivots_;
  double largest_ = 0;
  std::vector<double> lower_, inverse_, first_, second_, x_, slope_, target_, step_, multiplier_;
  Subset passive_, active_;
  std::vector<char> is_passive_, wrong_;
};

// Solve n rows in place; flag those that were not solved.
template <class T>
void simplex_pivoting(T* factor, const double* gram, const double* projector, const double* full, const T* cross,
                      bool* unsolved, std::int64_t n, std::int64_t k, std::int64_t max_pivots, int n_threads) {
  parallel_for(n, 16, n_threads, [&](std::int64_t begin, std::int64_t end) {
    SimplexPivoting pivoting(gram, projector, k, max_pivots);
    for (std::int64_t i = begin; i < end; ++i) unsolved[i] = !pivoting.solve(factor + i * k, full + i * k, cross + i * k);
  });
}

}  // namespace nonneg
