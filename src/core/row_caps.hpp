// The rows' half of an ADMM iteration with the penalty tau sum_n max_l z_nl on nonnegative entries.
//
// Its proximal operator cuts the entries of a row to the interval from 0 to a cap: where the sum of what is cut off
// above equals tau, or 0 where the positive entries sum to less. Every row is read while it is in the cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pool.hpp"

namespace nonneg {

// Rows whose sums are added first: 16 threads still share the 100 rows of a small problem.
constexpr std::int64_t cap_block = 4;

// Newton's method on the piecewise linear sum of the parts above a cap, from the last cap.
template <class T>
T row_cap(const T* row, std::int64_t n, T cap, T tau, T unit) {
  // To the right of the solution one step leads to its left; from there the steps are monotone and end after a finite
  // number; more than this has not been seen.
  for (int turn = 0; turn < 60; ++turn) {
    T total = 0, count = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const T above = row[j] - cap;
      total += std::max(above, T(0));
      count += above > 0 ? T(1) : T(0);
    }
    if (count == 0) {
      if (!(cap > 0)) return cap;
      cap = 0;
      continue;
    }
    const T step = (total - tau) / count, next = std::max(cap + step, T(0));
    if (next == cap || (step >= 0 && step <= unit * cap)) return next;
    cap = next;
  }
  return cap;
}

// Update split and dual variables, given C = offset + product; `product` becomes split minus dual. Returns squared norms
// of C minus split, of the change of split, of split and of dual.
template <class T>
std::array<double, 4> cap_rows(const T* offset, T* product, T* split, T* dual, T* caps, std::int64_t n_rows, std::int64_t n,
                               double relax, double tau, double unit, int n_threads) {
  const T factor = static_cast<T>(relax), rest = static_cast<T>(1 - relax), inverse = static_cast<T>(1 / relax);
  std::vector<std::array<double, 4>> sums((n_rows + cap_block - 1) / cap_block);
  parallel_for(n_rows, cap_block, n_threads, [&](std::int64_t begin, std::int64_t end) {
    std::array<double, 4>& block = sums[begin / cap_block];
    for (std::int64_t i = begin; i < end; ++i) {
      const T* __restrict o = offset + i * n;
      T* __restrict p = product + i * n, * __restrict z = split + i * n, * __restrict u = dual + i * n;
      for (std::int64_t j = 0; j < n; ++j) p[j] = factor * (o[j] + p[j]) + rest * z[j] + u[j];
      const T cap = caps[i] = row_cap(p, n, caps[i], static_cast<T>(tau), static_cast<T>(unit));
      T primal = 0, change = 0, size = 0, dual_size = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const T value = p[j], clipped = std::min(std::max(value, T(0)), cap), remainder = value - clipped;
        const T gap = (value - u[j] - rest * z[j]) * inverse - clipped, moved = clipped - z[j];
        primal += gap * gap, change += moved * moved, size += clipped * clipped, dual_size += remainder * remainder;
        z[j] = clipped, u[j] = remainder, p[j] = clipped - remainder;
      }
      block[0] += primal, block[1] += change, block[2] += size, block[3] += dual_size;
    }
  });
  std::array<double, 4> total{};
  for (const auto& block : sums)
    for (int s = 0; s < 4; ++s) total[s] += block[s];
  return total;
}

}  // namespace nonneg
