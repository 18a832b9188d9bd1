// Rows of minimum l1 norm of a left inverse, by the simplex method.
//
// Row i on a basis S of n indices is row i of the inverse of A[S], which is feasible whatever S is. An index whose dual
// constraint is violated enters; the norm falls along that direction until enough entries have changed sign, and the
// last of these leaves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "pool.hpp"

namespace nonneg {

class L1Simplex {
 public:
  L1Simplex(const double* A, std::int64_t m, std::int64_t n)
      : A_(A), m_(m), n_(n), inside_(m), signs_(n), values_(n), y_(n), coefficients_(n), z_(m), work_(n * n),
        inverse_(n * n) {}

  // Solve b A = target for the b of minimum l1 norm, from a basis that is overwritten; return the number of pivots, -1
  // where the method gave up. Row i of the inverse of the last basis and the dual solution are written.
  std::int64_t solve(const double* target, std::int64_t i, std::int64_t* basis, double* out, double* dual, double tol,
                     std::int64_t max_pivots) {
    constexpr std::int64_t refactorize = 40;  // pivots before rounding adds up; simplex codes use 20 to 100
    std::fill(inside_.begin(), inside_.end(), 0);
    for (std::int64_t j = 0; j < n_; ++j) inside_[basis[j]] = 1;
    factorize(basis);
    vector_times(target, values_);
    for (std::int64_t j = 0; j < n_; ++j) signs_[j] = values_[j] >= 0 ? 1 : -1;
    std::int64_t n_pivots = -1;
    for (std::int64_t pivot = 0; pivot < max_pivots; ++pivot) {
      matrix_times(inverse_.data(), n_, signs_.data(), y_.data());
      matrix_times(A_, m_, y_.data(), z_.data());
      double largest = 1 + tol;
      std::int64_t entering = -1;
      for (std::int64_t k = 0; k < m_; ++k)
        if (std::abs(z_[k]) > largest && !inside_[k]) largest = std::abs(z_[k]), entering = k;
      if (entering < 0) {
        n_pivots = pivot;
        break;
      }
      const double side = z_[entering] > 0 ? 1 : -1;
      vector_times(A_ + entering * n_, coefficients_);
      const auto [length, place] = leaving(side, 1 - largest);
      if (place < 0) break;
      for (std::int64_t j = 0; j < n_; ++j) values_[j] -= side * length * coefficients_[j];
      values_[place] = side * length, signs_[place] = side;
      inside_[basis[place]] = 0, inside_[entering] = 1;
      basis[place] = entering;
      exchange(place);
      if (pivot % refactorize == 0) {
        factorize(basis);
        vector_times(target, values_);
      }
    }
    factorize(basis);
    std::fill(out, out + m_, 0.0);
    for (std::int64_t j = 0; j < n_; ++j) out[basis[j]] = inverse_[i * n_ + j];
    matrix_times(inverse_.data(), n_, signs_.data(), dual);
    return n_pivots;
  }

 private:
  // The inverse of the rows of the basis: Gauss-Jordan with row pivoting.
  void factorize(const std::int64_t* basis) {
    double *work = work_.data(), *out = inverse_.data();
    for (std::int64_t i = 0; i < n_; ++i) {
      std::copy(A_ + basis[i] * n_, A_ + (basis[i] + 1) * n_, work + i * n_);
      std::fill(out + i * n_, out + (i + 1) * n_, 0.0);
      out[i * n_ + i] = 1;
    }
    for (std::int64_t c = 0; c < n_; ++c) {
      std::int64_t best = c;
      for (std::int64_t i = c + 1; i < n_; ++i)
        if (std::abs(work[i * n_ + c]) > std::abs(work[best * n_ + c])) best = i;
      if (best != c) {
        std::swap_ranges(work + c * n_, work + (c + 1) * n_, work + best * n_);
        std::swap_ranges(out + c * n_, out + (c + 1) * n_, out + best * n_);
      }
      const double pivot = work[c * n_ + c];
      for (std::int64_t j = 0; j < n_; ++j) work[c * n_ + j] /= pivot, out[c * n_ + j] /= pivot;
      for (std::int64_t i = 0; i < n_; ++i) {
        const double factor = work[i * n_ + c];
        if (i == c || factor == 0) continue;
        for (std::int64_t j = 0; j < n_; ++j) work[i * n_ + j] -= factor * work[c * n_ + j];
        for (std::int64_t j = 0; j < n_; ++j) out[i * n_ + j] -= factor * out[c * n_ + j];
      }
    }
  }

  void matrix_times(const double* matrix, std::int64_t n_rows, const double* vector, double* out) const {
    for (std::int64_t i = 0; i < n_rows; ++i) {
      double total = 0;
      for (std::int64_t j = 0; j < n_; ++j) total += matrix[i * n_ + j] * vector[j];
      out[i] = total;
    }
  }

  // out = vector times the inverse
  void vector_times(const double* vector, std::vector<double>& out) const {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) out[j] += vector[i] * inverse_[i * n_ + j];
  }

  // Row `place` of the basis becomes coefficients @ basis: one column of the inverse is scaled, the others lose what
  // they have of it.
  void exchange(std::int64_t place) {
    for (std::int64_t i = 0; i < n_; ++i) {
      double* row = &inverse_[i * n_];
      const double own = row[place] / coefficients_[place];
      for (std::int64_t j = 0; j < n_; ++j) row[j] -= coefficients_[j] * own;
      row[place] = own;
    }
  }

  // Along the entering entry the norm is convex and piecewise linear: it falls until enough of the others have changed
  // their sign.
  std::pair<double, std::int64_t> leaving(double side, double slope) {
    double length = 0;
    std::int64_t place = -1;
    while (slope < 0) {
      length = std::numeric_limits<double>::infinity(), place = -1;
      for (std::int64_t j = 0; j < n_; ++j) {
        const double rate = side * coefficients_[j];
        if (!(signs_[j] * rate > 1e-11)) continue;
        const double here = std::max(values_[j] / rate, 0.0);
        const bool steeper = place < 0 || std::abs(rate) > std::abs(coefficients_[place]);
        if (here < length || (here == length && steeper)) length = here, place = j;
      }
      if (place < 0) break;
      slope += 2 * std::abs(coefficients_[place]);
      signs_[place] = -signs_[place];
    }
    return {length, place};
  }

  const double* A_;
  std::int64_t m_, n_;
  std::vector<char> inside_;
  std::vector<double> signs_, values_, y_, coefficients_, z_, work_, inverse_;
};

// Solve all n problems, in ranges of one.
inline void l1_rows(const double* A, std::int64_t m, std::int64_t n, const double* targets, std::int64_t* bases, double* out,
                    double* dual, std::int64_t* n_pivots, double tol, std::int64_t max_pivots, int n_threads) {
  parallel_for(n, 1, n_threads, [&](std::int64_t i, std::int64_t) {
    L1Simplex simplex(A, m, n);
    n_pivots[i] = simplex.solve(targets + i * n, i, bases + i * n, out + i * m, dual + i * n, tol, max_pivots);
  });
}

}  // namespace nonneg
