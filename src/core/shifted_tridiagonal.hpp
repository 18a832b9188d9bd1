// Sums of solutions of shifted tridiagonal systems.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pool.hpp"

namespace nonneg {

// out = sum over s of scales[s] (T + shifts[s] I)^-1 Y for a symmetric positive semidefinite tridiagonal T; Y and out are
// m x n. Blocks of columns are solved apart.
template <class T>
void sum_of_solutions(const T* diagonal, const T* beside, std::int64_t m, const T* shifts, const T* scales,
                      std::int64_t n_shifts, const T* Y, std::int64_t n, T* out, int n_threads) {
  // T + shift I = L D L' without pivoting: the matrices are positive definite.
  std::vector<T> inverses(n_shifts * m), factors(n_shifts * m);
  for (std::int64_t s = 0; s < n_shifts; ++s) {
    T *inverse = &inverses[s * m], *factor = &factors[s * m];
    for (std::int64_t i = 0; i < m; ++i) {
      inverse[i] = 1 / (diagonal[i] + shifts[s] - (i > 0 ? beside[i - 1] * factor[i - 1] : T(0)));
      if (i + 1 < m) factor[i] = beside[i] * inverse[i];
    }
  }
  constexpr std::int64_t width = 64;
  parallel_for(n, width, n_threads, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t size = end - begin;
    std::vector<T> x(m * width);
    for (std::int64_t i = 0; i < m; ++i) std::fill(out + i * n + begin, out + i * n + end, T(0));
    for (std::int64_t s = 0; s < n_shifts; ++s) {
      const T *inverse = &inverses[s * m], *factor = &factors[s * m];
      for (std::int64_t i = 0; i < m; ++i) {
        const T *right = Y + i * n + begin, *above = &x[std::max<std::int64_t>(i - 1, 0) * width];
        const T f = i > 0 ? factor[i - 1] : T(0);
        T* row = &x[i * width];
        if (i == 0) std::copy(right, right + size, row);
        else
          for (std::int64_t j = 0; j < size; ++j) row[j] = right[j] - f * above[j];
      }
      for (std::int64_t i = m - 1; i >= 0; --i) {
        const T *below = &x[std::min(i + 1, m - 1) * width], d = inverse[i], f = i + 1 < m ? factor[i] : T(0),
                scale = scales[s];
        T *row = &x[i * width], *total = out + i * n + begin;
        for (std::int64_t j = 0; j < size; ++j) {
          row[j] = row[j] * d - f * below[j];
          total[j] += scale * row[j];
        }
      }
    }
  });
}

}  // namespace nonneg
