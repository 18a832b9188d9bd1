// Coordinate descent on rows with a Gram matrix each: data in which most entries have the same weight.
//
// Row i has base + sum of values_p o_j o_j' over its listed j: with few observed entries base is zero and the values
// are their weights; with few missing ones base is O'O and the values are -1. Every row may also have a base of its own,
// and no list. Formed in double whatever the data: a difference of single-precision sums would leave noise where
// little is observed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "pool.hpp"

namespace nonneg {

// Rounding leaves less than this fraction of the base in a difference of equal sums.
constexpr double gram_noise = 1e-12;

template <class T, class I>
struct ListedGrams {
  const double* base;
  std::int64_t stride;  // from the base of a row to the next: 0 where all rows share one
  const double* values;
  const T* other;
  const I *indptr, *indices;
  std::int64_t k;

  // Write the Gram matrix of row i.
  void form(std::int64_t i, double* gram) const {
    std::copy(base + i * stride, base + i * stride + k * k, gram);
    for (auto p = static_cast<std::int64_t>(indptr[i]); p < static_cast<std::int64_t>(indptr[i + 1]); ++p) {
      const T* o = other + static_cast<std::int64_t>(indices[p]) * k;
      for (std::int64_t a = 0; a < k; ++a) {
        const double scaled = values[p] * o[a];
        if (scaled != 0)
          for (std::int64_t b = 0; b < k; ++b) gram[a * k + b] += scaled * o[b];
      }
    }
  }

  bool is_flat(std::int64_t i, std::int64_t a, const double* gram) const {
    return gram[a * k + a] <= gram_noise * base[i * stride + a * k + a];
  }

  // The same, with rounding noise set to zero.
  void form_clean(std::int64_t i, double* gram) const {
    form(i, gram);
    for (std::int64_t a = 0; a < k; ++a)
      if (is_flat(i, a, gram))
        for (std::int64_t b = 0; b < k; ++b) gram[a * k + b] = gram[b * k + a] = 0;
  }
};

// Update one row in place; see hals.hpp. Returns the sum of absolute projected gradients in the first pass.
template <class T, class I>
double hals_listed_row(const ListedGrams<T, I>& grams, std::int64_t i, const T* cross, const std::int64_t* order,
                       std::int64_t n_order, int max_passes, double shrink, T* f, std::vector<double>& gram) {
  const std::int64_t k = grams.k;
  grams.form(i, gram.data());
  double limit = 0, violation = 0;
  for (int sweep = 0; sweep < max_passes; ++sweep) {
    double change = 0;
    for (std::int64_t turn = 0; turn < n_order; ++turn) {
      const std::int64_t a = order[turn];
      if (grams.is_flat(i, a, gram.data())) continue;
      double slope = -static_cast<double>(cross[a]);
      for (std::int64_t b = 0; b < k; ++b) slope += gram[a * k + b] * f[b];
      const T old = f[a], moved = static_cast<T>(std::max(old - slope / gram[a * k + a], 0.0));
      f[a] = moved;
      change += static_cast<double>(moved - old) * (moved - old);
      if (sweep == 0) violation += old > 0 ? std::abs(slope) : std::max(-slope, 0.0);
    }
    if (sweep == 0) limit = shrink * shrink * change;
    if (change <= limit) break;
  }
  return violation;
}

// Update n rows in place.
template <class T, class I>
double hals_listed(T* factor, const ListedGrams<T, I>& grams, const T* cross, std::int64_t n, const std::int64_t* order,
                   std::int64_t n_order, int max_passes, double shrink, int n_threads) {
  constexpr std::int64_t block = 16;
  const std::int64_t k = grams.k;
  std::vector<double> violations((n + block - 1) / block);
  parallel_for(n, block, n_threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> gram(k * k);
    for (std::int64_t i = begin; i < end; ++i)
      violations[begin / block] +=
          hals_listed_row(grams, i, cross + i * k, order, n_order, max_passes, shrink, factor + i * k, gram);
  });
  return std::accumulate(violations.begin(), violations.end(), 0.0);
}

// Write the Gram matrices of n rows: n x k x k.
template <class T, class I>
void listed_grams(const ListedGrams<T, I>& grams, T* out, std::int64_t n, int n_threads) {
  const std::int64_t kk = grams.k * grams.k;
  parallel_for(n, 16, n_threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> gram(kk);
    for (std::int64_t i = begin; i < end; ++i) {
      grams.form_clean(i, gram.data());
      std::copy(gram.begin(), gram.end(), out + i * kk);
    }
  });
}

}  // namespace nonneg
