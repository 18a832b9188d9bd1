// Exact nonnegative least squares by block principal pivoting, row by row (Kim & Park 2011, Algorithm 1).
//
// Minimizes 0.5 f G f' - c f' over f >= 0. A row guesses its passive set (entries above zero), solves the
// equations of the passive components by Cholesky, and exchanges components on the wrong side: all of them
// while that makes progress, else the last one, which always ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.hpp"
#include "pool.hpp"

namespace nonneg {

class BlockPivoting {
 public:
  BlockPivoting(std::int64_t k, std::int64_t max_pivots)
      : k_(k), length_((k + lanes - 1) / lanes * lanes), max_pivots_(max_pivots), gram_(k * length_), lower_(k * length_),
        target_(length_), rest_(length_), x_(length_), solution_(k), inverse_(k), passive_(k), is_passive_(k), factored_(k),
        wrong_(k) {}

  // Replace a row, whose positive entries are the first guess, by the minimizer. Returns false, and leaves the row
  // as it is, where the system is singular or the exchanges do not end.
  template <class T>
  bool solve(T* row, const double* gram, const T* cross) {
    if (gram != source_) {
      for (std::int64_t a = 0; a < k_; ++a) std::copy_n(gram + a * k_, k_, &gram_[a * length_]);
      source_ = gram, n_factored_ = 0;
    }
    for (std::int64_t a = 0; a < k_; ++a) target_[a] = cross[a], is_passive_[a] = row[a] > 0 && curvature(a) > 0;
    if (!solve()) return false;
    std::copy_n(x_.begin(), k_, row);
    return true;
  }

 private:
  bool solve() {
    double scale = 0;
    for (const double entry : target_) scale = std::max(scale, std::abs(entry));
    const double tolerance = 1e-14 * scale;
    std::int64_t fewest = k_ + 1, patience = full_patience;
    for (std::int64_t pivot = 0; pivot < max_pivots_; ++pivot) {
      if (!solve_passive()) return false;
      const std::int64_t n_wrong = find_wrong(tolerance);
      if (n_wrong == 0) {
        drop_noise();
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
  // Arrays are whole registers long.
  static constexpr std::int64_t lanes = register_bytes / sizeof(double);

  double curvature(std::int64_t a) const { return gram_[a * length_ + a]; }

  // Solve the equations of the passive components; tell whether they are regular. Columns of the Cholesky factor are
  // as long as those of the Gram matrix, whatever is passive, and zero up to their component: a column depends on the
  // passive components before it alone, and those that the last set began with are there already.
  bool solve_passive() {
    const auto first = std::mismatch(factored_.begin(), factored_.begin() + n_factored_, is_passive_.begin()).first;
    const std::int64_t same = first - factored_.begin();
    factored_ = is_passive_;
    n_passive_ = 0;
    for (n_factored_ = 0; n_factored_ < k_; ++n_factored_)
      if (const std::int64_t a = n_factored_; is_passive_[a]) {
        if (a >= same && !factor(a)) return false;
        passive_[n_passive_++] = a;
      }
    double *rest = rest_.data(), *x = x_.data();
    for (std::int64_t i = 0; i < length_; i += lanes) {
      put(rest + i, get(&target_[i]));
      put(x + i, in_register(0.0));
    }
    for (std::int64_t s = 0; s < n_passive_; ++s) {
      const std::int64_t a = passive_[s];
      const double *column = &lower_[a * length_], value = solution_[s] = rest[a] * inverse_[a];
      for (std::int64_t i = whole(a); i < length_; i += lanes)
        put(rest + i, get(rest + i) - in_register(value) * get(column + i));
    }
    for (std::int64_t s = n_passive_ - 1; s >= 0; --s) {
      const std::int64_t a = passive_[s];
      const double* column = &lower_[a * length_];
      Register<double> sums = in_register(0.0);
      for (std::int64_t i = whole(a); i < length_; i += lanes) sums += get(column + i) * get(x + i);
      double sum = 0;
      for (std::int64_t i = 0; i < lanes; ++i) sum += sums[i];
      solution_[s] = x[a] = (solution_[s] - sum) * inverse_[a];
    }
    return true;
  }

  // Compute the column of a component from the passive ones before it; false where it depends on them.
  bool factor(std::int64_t a) {
    double* column = &lower_[a * length_];
    subtract(&gram_[a * length_], lower_.data(), whole(a), column,
             [&](std::int64_t s) { return lower_[passive_[s] * length_ + a]; });
    const double rest = column[a];
    if (!(rest > 1e-13 * curvature(a))) return false;
    inverse_[a] = 1 / std::sqrt(rest);
    for (std::int64_t i = whole(a); i < length_; i += lanes) put(column + i, get(column + i) * in_register(inverse_[a]));
    for (std::int64_t i = whole(a); i <= a; ++i) column[i] = 0;
    return true;
  }

  // out = from - sum of the passive columns times their weights, in the entries from `begin` on.
  template <class Weight>
  void subtract(const double* from, const double* columns, std::int64_t begin, double* out, const Weight& weight) const {
    for (; begin + 4 * lanes <= length_; begin += 4 * lanes) strip<4>(from + begin, columns + begin, out + begin, weight);
    for (; begin + 2 * lanes <= length_; begin += 2 * lanes) strip<2>(from + begin, columns + begin, out + begin, weight);
    for (; begin < length_; begin += lanes) strip<1>(from + begin, columns + begin, out + begin, weight);
  }

  template <int n, class Weight>
  void strip(const double* from, const double* columns, double* out, const Weight& weight) const {
    // Two sums: each addition would wait for the last one.
    Register<double> sums[2][n];
    NONNEG_UNROLL
    for (int i = 0; i < n; ++i) sums[0][i] = get(from + i * lanes), sums[1][i] = in_register(0.0);
    const auto take = [&](Register<double>* sum, std::int64_t s) {
      const Register<double> factor = in_register(weight(s));
      const double* column = columns + passive_[s] * length_;
      NONNEG_UNROLL
      for (int i = 0; i < n; ++i) sum[i] -= factor * get(column + i * lanes);
    };
    std::int64_t s = 0;
    for (; s + 2 <= n_passive_; s += 2) take(sums[0], s), take(sums[1], s + 1);
    if (s < n_passive_) take(sums[0], s);
    NONNEG_UNROLL
    for (int i = 0; i < n; ++i) put(out + i * lanes, sums[0][i] + sums[1][i]);
  }

  static Register<double> get(const double* from) {
    Register<double> entries;
    std::memcpy(&entries, from, register_bytes);
    return entries;
  }
  static void put(double* to, const Register<double>& entries) { std::memcpy(to, &entries, register_bytes); }
  // The first entry of the register of a component.
  static std::int64_t whole(std::int64_t a) { return a / lanes * lanes; }

  // Flag negative passive entries and negative slopes at the others; return their number.
  std::int64_t find_wrong(double tolerance) {
    subtract(target_.data(), gram_.data(), 0, rest_.data(),
             [&](std::int64_t s) { return solution_[s]; });  // minus the slopes
    std::int64_t n_wrong = 0;
    for (std::int64_t a = 0; a < k_; ++a) {
      wrong_[a] = is_passive_[a] ? x_[a] < 0 : rest_[a] > tolerance && curvature(a) > 0;
      if (wrong_[a]) last_wrong_ = a, ++n_wrong;
    }
    return n_wrong;
  }

  // What adds less to the row than its rounding is noise, and nothing is to be fitted to it.
  void drop_noise() {
    double largest = 0;
    for (std::int64_t a = 0; a < k_; ++a) largest = std::max(largest, x_[a] * x_[a] * curvature(a));
    for (std::int64_t a = 0; a < k_; ++a)
      if (!(x_[a] * x_[a] * curvature(a) > negligible * negligible * largest)) x_[a] = 0;
  }

  std::int64_t k_, length_, max_pivots_, n_passive_ = 0, n_factored_ = 0, last_wrong_ = 0;
  const double* source_ = nullptr;
  std::vector<double> gram_, lower_, target_, rest_, x_, solution_, inverse_;
  std::vector<std::int64_t> passive_;
  std::vector<char> is_passive_, factored_, wrong_;
};

// Solve n rows in place, with one Gram matrix for all of them or one per row; flag those that were not solved.
template <class T>
void block_pivoting(T* factor, const double* grams, bool own, const T* cross, bool* unsolved, std::int64_t n, std::int64_t k,
                    std::int64_t max_pivots, int n_threads) {
  parallel_for(n, 64, n_threads, [&](std::int64_t begin, std::int64_t end) {
    BlockPivoting pivoting(k, max_pivots);
    for (std::int64_t i = begin; i < end; ++i)
      unsolved[i] = !pivoting.solve(factor + i * k, grams + (own ? i * k * k : 0), cross + i * k);
  });
}

}  // namespace nonneg
