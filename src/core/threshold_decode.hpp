// Threshold decoding: weights x = phi(A^+ y) of samples y, and their sums with the samples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "blas.hpp"
#include "pool.hpp"

namespace nonneg {

// What becomes of values above the threshold; others become zero. Linear keeps all values.
enum class DecodeRule { unshifted, shifted, linear };

template <class T>
struct ThresholdDecode {
  const T* X;
  std::int64_t n_rows, m, n;
  const T *inverse, *threshold, *reference;  // n x m, n, n
  DecodeRule rule;
  const T* weights;  // of the samples, or null
  double* sums;      // see `Sums`; n_sums() of them

  std::int64_t n_sums() const { return (n + 1) * (n + 1 + m) + 3 * n; }

  void run(int n_threads) const {
    // A megabyte of rows, so that the second product finds them in the cache; parts follow from the shape alone.
    const std::int64_t block = std::max<std::int64_t>(16, (1 << 17) / std::max<std::int64_t>(m, 1));
    const std::int64_t n_blocks = (n_rows + block - 1) / block, n_parts = std::min<std::int64_t>(n_blocks, 32);
    const std::int64_t size = n_sums();
    std::vector<double> parts(n_parts * size);
    Pool::instance().run(n_parts, n_threads, [&](std::int64_t part) {
      std::vector<T> values(block * n), extended(block * (n + 1)), weighted(weights ? block * (n + 1) : 0);
      std::vector<T> products((n + 1) * std::max(m, n + 1));
      const Sums own(&parts[part * size], *this);
      const std::int64_t end = std::min(n_rows, n_blocks * (part + 1) / n_parts * block);
      for (std::int64_t first = n_blocks * part / n_parts * block; first < end; first += block) {
        const std::int64_t count = std::min(block, end - first);
        const T* rows = X + first * m;
        gemm(Order::plain, Order::transposed, count, n, m, rows, m, inverse, m, values.data(), n);
        decode(values.data(), first, count, extended.data(), weighted.data(), own);
        const T* left = weights ? weighted.data() : extended.data();
        gemm(Order::transposed, Order::plain, n + 1, m, count, left, n + 1, rows, m, products.data(), m);
        for (std::int64_t i = 0; i < (n + 1) * m; ++i) own.cross[i] += products[i];
        gemm(Order::transposed, Order::plain, n + 1, n + 1, count, left, n + 1, extended.data(), n + 1, products.data(),
             n + 1);
        for (std::int64_t i = 0; i < (n + 1) * (n + 1); ++i) own.gram[i] += products[i];
      }
    });
    std::fill(sums, sums + size, 0.0);
    for (std::size_t i = 0; i < parts.size(); ++i) sums[i % size] += parts[i];
  }

 private:
  // gram (n + 1) x (n + 1), cross (n + 1) x m, and three of length n, one after the other.
  struct Sums {
    double *gram, *cross, *negative_counts, *negative_squares, *active;
    Sums(double* from, const ThresholdDecode& problem)
        : gram(from), cross(gram + (problem.n + 1) * (problem.n + 1)), negative_counts(cross + (problem.n + 1) * problem.m),
          negative_squares(negative_counts + problem.n), active(negative_squares + problem.n) {}
  };

  // Weights less the reference, and a one, for every row; and the same times the weight of the sample.
  void decode(const T* values, std::int64_t first, std::int64_t count, T* extended, T* weighted, const Sums& own) const {
    for (std::int64_t i = 0; i < count; ++i, values += n, extended += n + 1) {
      const T share = weights ? weights[first + i] : T(1);
      for (std::int64_t j = 0; j < n; ++j) {
        const T value = values[j];
        const bool above = rule == DecodeRule::linear || value > threshold[j];
        own.negative_counts[j] += value < 0 ? share : T(0);
        own.negative_squares[j] += value < 0 ? share * value * value : T(0);
        own.active[j] += above ? share : T(0);
        extended[j] = (above ? value - (rule == DecodeRule::shifted ? threshold[j] : T(0)) : T(0)) - reference[j];
      }
      extended[n] = 1;
      if (weights)
        for (std::int64_t j = 0; j <= n; ++j) weighted[i * (n + 1) + j] = share * extended[j];
    }
  }
};

template <class T>
void threshold_decode(const ThresholdDecode<T>& problem, int n_threads) {
  problem.run(n_threads);
}

}  // namespace nonneg
