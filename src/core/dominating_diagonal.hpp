// Projection onto matrices C >= 0 with c_ii <= 1 and w_i c_ij <= w_j c_ii, row by row.
//
// With the diagonal entry t, the others are clipped to [0, w_j t / w_i]; the optimal t is the root of a concave
// piecewise linear function, which Newton's method finds from the left in finitely many steps, without sorting.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pool.hpp"

namespace nonneg {

template <class T>
T dominating_level(const T* row, const T* weights, std::int64_t n, std::int64_t i, std::int64_t max_steps) {
  const T own = weights[i], diagonal = row[i];
  T level = std::min(std::max(diagonal, T(0)), T(1));
  for (std::int64_t turn = 0; turn < max_steps; ++turn) {
    const T cut = level / own;
    T total = 0, square = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const T weight = row[j] > weights[j] * cut ? weights[j] : T(0);
      total += weight * row[j];
      square += weight * weight;
    }
    if (diagonal > own * cut) total -= own * diagonal, square -= own * own;
    const T next = std::min(std::max(own * (own * diagonal + total) / (own * own + square), T(0)), T(1));
    if (!(next > level)) break;
    level = next;
  }
  return level;
}

template <class T>
void dominating_diagonal(T* C, const T* weights, std::int64_t n, std::int64_t max_steps, int n_threads) {
  parallel_for(n, 1, n_threads, [&](std::int64_t i, std::int64_t) {
    T* __restrict row = C + i * n;
    const bool bound = weights[i] > 0;
    const T level = bound ? dominating_level(row, weights, n, i, max_steps) : std::min(std::max(row[i], T(0)), T(1));
    const T scale = bound ? level / weights[i] : T(0);
    for (std::int64_t j = 0; j < n; ++j) {
      row[j] = std::max(row[j], T(0));
      if (bound) row[j] = std::min(row[j], weights[j] * scale);
    }
    row[i] = level;
  });
}

}  // namespace nonneg
