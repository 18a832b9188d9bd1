// Exact nonnegative least squares by block principal pivoting, row by row (Kim & Park 2011, Algorithm 1).
//
// Minimizes 0.5 f G f' - c f' over f >= 0. A row guesses its passive set (entries above zero), solves the
// equations of the passive components by Cholesky, and exchanges components on the wrong side: all of them
// while that makes progress, else the last one, which always ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "pool.hpp"

namespace nonneg {

class BlockPivoting {
 public:
  BlockPivoting(std::int64_t k, std::int64_t max_pivots)
      : k_(k), max_pivots_(max_pivots), lower_(k * k), inverse_(k), solution_(k), target_(k), x_(k), passive_(k),
        factored_(k), is_passive_(k), wrong_(k) {}

  // Replace a row, whose positive entries are the first guess, by the minimizer. Returns false, and leaves the row
  // as it is, where the system is singular or the exchanges do not end.
  template <class T>
  bool solve(T* row, const double* gram, const T* cross) {
    for (std::int64_t a = 0; a < k_; ++a) target_[a] = cross[a], is_passive_[a] = row[a] > 0 && gram[a * k_ + a] > 0;
    if (!solve(gram)) return false;
    std::copy(x_.begin(), x_.end(), row);
    return true;
  }

 private:
  bool solve(const double* gram) {
    if (gram != factored_gram_) factored_gram_ = gram, n_factored_ = 0;
    double scale = 0;
    for (const double entry : target_) scale = std::max(scale, std::abs(entry));
    const double tolerance = 1e-14 * scale;
    std::int64_t fewest = k_ + 1, patience = full_patience;
    for (std::int64_t pivot = 0; pivot < max_pivots_; ++pivot) {
      n_passive_ = 0;
      for (std::int64_t a = 0; a < k_; ++a)
        if (is_passive_[a]) passive_[n_passive_++] = a;
      if (!solve_passive(gram)) return false;
      const std::int64_t n_wrong = find_wrong(gram, tolerance);
      if (n_wrong == 0) {
        drop_noise(gram);
        return true;
      }
      const bool better = n_wrong < fewest, alone = !better && patience == 0;
      patience = better ? full_patience : std::max<std::int64_t>(patience - 1, 0);
      fewest = std::min(fewest, n_wrong);
      for (std::int64_t a = 0; a < k_; ++a)
        if (alone ? a == last_wrong_ : wrong_[a]) is_passive_[a] = !is_passive_[a];
    }
    return false;
  }

  // Exchanges of all wrong components that may bring no progress.
  static constexpr std::int64_t full_patience = 3;
  // Norm of a component's part of a row below which it is rounding, as a share of the largest of them.
  static constexpr double negligible = 1e-14;

  // Solve the equations of the passive components; tell whether they are regular. Rows of the Cholesky factor depend on
  // the components up to theirs: those that the last set began with are there already.
  bool solve_passive(const double* gram) {
    const std::int64_t n = n_passive_;
    std::int64_t same = 0;
    while (same < std::min(n, n_factored_) && factored_[same] == passive_[same]) ++same;
    n_factored_ = same;
    for (std::int64_t a = same; a < n; ++a) {
      double* row = &lower_[a * k_];
      const double* gram_a = gram + passive_[a] * k_;
      for (std::int64_t b = 0; b < a; ++b) row[b] = (gram_a[passive_[b]] - dot(row, &lower_[b * k_], b)) * inverse_[b];
      const double pivot = gram_a[passive_[a]], rest = pivot - dot(row, row, a);
      if (!(rest > 1e-13 * pivot)) return false;
      inverse_[a] = 1 / std::sqrt(rest);
      factored_[n_factored_++] = passive_[a];
    }
    for (std::int64_t a = 0; a < n; ++a)
      solution_[a] = (target_[passive_[a]] - dot(&lower_[a * k_], solution_.data(), a)) * inverse_[a];
    for (std::int64_t a = n - 1; a >= 0; --a) {
      const double value = solution_[a] *= inverse_[a];
      for (std::int64_t c = 0; c < a; ++c) solution_[c] -= lower_[a * k_ + c] * value;
    }
    return true;
  }

  // Four sums: each addition would wait for the last one.
  static double dot(const double* a, const double* b, std::int64_t n) {
    double sums[4] = {};
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4)
      for (std::int64_t j = 0; j < 4; ++j) sums[j] += a[i + j] * b[i + j];
    for (; i < n; ++i) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  // Flag negative passive entries and negative slopes at the others; return their number.
  std::int64_t find_wrong(const double* gram, double tolerance) {
    std::fill(x_.begin(), x_.end(), 0.0);
    for (std::int64_t a = 0; a < n_passive_; ++a) x_[passive_[a]] = solution_[a];
    std::int64_t n_wrong = 0;
    for (std::int64_t a = 0; a < k_; ++a) {
      if (is_passive_[a]) {
        wrong_[a] = x_[a] < 0;
      } else {
        const double falls = target_[a] - dot(gram + a * k_, x_.data(), k_);  // minus the slope
        wrong_[a] = falls > tolerance && gram[a * k_ + a] > 0;
      }
      if (wrong_[a]) last_wrong_ = a, ++n_wrong;
    }
    return n_wrong;
  }

  // What adds less to the row than its rounding is noise, and nothing is to be fitted to it.
  void drop_noise(const double* gram) {
    double largest = 0;
    for (std::int64_t a = 0; a < k_; ++a) largest = std::max(largest, x_[a] * x_[a] * gram[a * k_ + a]);
    for (std::int64_t a = 0; a < k_; ++a)
      if (!(x_[a] * x_[a] * gram[a * k_ + a] > negligible * negligible * largest)) x_[a] = 0;
  }

  std::int64_t k_, max_pivots_, n_passive_ = 0, n_factored_ = 0, last_wrong_ = 0;
  const double* factored_gram_ = nullptr;
  std::vector<double> lower_, inverse_, solution_, target_, x_;
  std::vector<std::int64_t> passive_, factored_;
  std::vector<char> is_passive_, wrong_;
};

// Solve n rows in place, with one Gram matrix for all of them or one per row; flag those that were not solved.
template <class T>
void block_pivoting(T* factor, const double* grams, bool own, const T* cross, bool* unsolved, std::int64_t n, std::int64_t k,
                    std::int64_t max_pivots, int n_threads) {
  parallel_for(n, 16, n_threads, [&](std::int64_t begin, std::int64_t end) {
    BlockPivoting pivoting(k, max_pivots);
    for (std::int64_t i = begin; i < end; ++i)
      unsolved[i] = !pivoting.solve(factor + i * k, grams + (own ? i * k * k : 0), cross + i * k);
  });
}

}  // namespace nonneg
