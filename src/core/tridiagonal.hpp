// Sums of solutions of shifted tridiagonal systems: rational functions of a symmetric matrix. float64 alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "pool.hpp"

namespace nonneg {

// out (m x p) = sum over s of scales[s] (T + shifts[s] I)^-1 Y for positive semidefinite T and positive shifts.
inline void sum_of_solutions(const double* diagonal, const double* beside, std::int64_t m, const double* shifts,
                             const double* scales, std::int64_t n_shifts, const double* Y, std::int64_t p, double* out,
                             int n_threads) {
  constexpr std::int64_t width = n_lanes<double>;
  // T + shift I = L D L' without pivoting: the matrix is positive definite.
  std::vector<double> inverses(n_shifts * m), factors(n_shifts * m);
  for (std::int64_t s = 0; s < n_shifts; ++s) {
    double *inverse = &inverses[s * m], *factor = &factors[s * m];
    for (std::int64_t i = 0; i < m; ++i) {
      inverse[i] = 1 / (diagonal[i] + shifts[s] - (i > 0 ? beside[i - 1] * factor[i - 1] : 0.0));
      factor[i] = i + 1 < m ? beside[i] * inverse[i] : 0.0;
    }
  }
  // Columns do not mix: some of them at once stay in registers from row to row.
  parallel_for(p, width, n_threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> right(m * width), rows(m * width), total(m * width);
    for (std::int64_t i = 0; i < m; ++i) std::copy(Y + i * p + begin, Y + i * p + end, &right[i * width]);
    for (std::int64_t s = 0; s < n_shifts; ++s) {
      const double *inverse = &inverses[s * m], *factor = &factors[s * m];
      Lanes<double> row = spread(0.0);
      for (std::int64_t i = 0; i < m; ++i) {
        row = load(&right[i * width]) - spread(i > 0 ? factor[i - 1] : 0.0) * row;
        store(&rows[i * width], row);
      }
      row = spread(0.0);
      for (std::int64_t i = m - 1; i >= 0; --i) {
        row = load(&rows[i * width]) * spread(inverse[i]) - spread(factor[i]) * row;
        store(&total[i * width], load(&total[i * width]) + spread(scales[s]) * row);
      }
    }
    for (std::int64_t i = 0; i < m; ++i) std::copy_n(&total[i * width], end - begin, out + i * p + begin);
  });
}

}  // namespace nonneg
