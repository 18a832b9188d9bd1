// Update of a factor in one task: a block of rows goes through all phases while it is cached.
//
// Products with the data, coordinate descent, extrapolation, and the sums that the other factor and the loss
// need. Each of them alone is over before many threads have begun; together they need one hand-over.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "blas.hpp"
#include "hals.hpp"
#include "pool.hpp"
#include "products.hpp"

namespace nonneg {

template <class T>
struct FactorUpdate {
  enum class Data { by_rows, by_columns, products };

  // The problem. `data` has a row per row of the factor; with Data::products, `other` holds the products, less nothing.
  Data form;
  const T* data;
  std::int64_t n_rows, inner, k, ld_data;
  const T* other;
  std::int64_t ld_other;
  const T* gram;
  const std::int64_t* order;
  std::int64_t n_order;
  int max_passes;
  double shrink, l1, momentum;
  const T *initial, *old;    // old: rows of the iteration before, for extrapolation; null without
  bool transposed_products;  // also return data' chosen, from the block that is cached
  std::int64_t block;

  // The results: rows after coordinate descent, the same extrapolated (the same array without), sums over rows.
  T *updated, *chosen;
  T *chosen_gram, *updated_gram, *products;  // k x k; k x k or null; inner x k or null
  double violation = 0, absolute = 0, dot = 0;

  void run(int n_threads) {
    const std::int64_t n_blocks = (n_rows + block - 1) / block, kk = k * k;
    Parts<T> grams(n_blocks, kk), updated_grams(updated_gram ? n_blocks : 0, kk);
    Parts<T> parts(transposed_products ? n_blocks : 0, k * inner);
    std::vector<double> sums(3 * n_blocks);
    parallel_for(n_rows, block, n_threads, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t n = end - begin, slot = begin / block;
      const auto cross = std::make_unique_for_overwrite<T[]>(n * k);
      multiply(begin, n, cross.get());
      HalsBlock<T> descent(gram, k, order, n_order, max_passes, shrink);
      double* sum = &sums[3 * slot];
      sum[0] = descent.update(initial + begin * k, cross.get(), updated + begin * k, n);
      if (old) extrapolate(begin, n);
      add(begin, n, cross.get(), sum);
      const T* rows = chosen + begin * k;
      gemm(Order::transposed, Order::plain, k, k, n, rows, k, rows, k, grams[slot], k);
      if (updated_gram) {
        const T* plain = updated + begin * k;
        gemm(Order::transposed, Order::plain, k, k, n, plain, k, plain, k, updated_grams[slot], k);
      }
      if (transposed_products)
        gemm(Order::transposed, form == Data::by_rows ? Order::plain : Order::transposed, k, inner, n, rows, k, line(begin),
             ld_data, parts[slot], inner);
    });
    grams.add(chosen_gram, n_threads);
    if (updated_gram) updated_grams.add(updated_gram, n_threads);
    if (transposed_products) {
      const auto sum = std::make_unique_for_overwrite<T[]>(k * inner);
      parts.add(sum.get(), n_threads);
      parallel_for(inner, 64, n_threads, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = begin; j < end; ++j)
          for (std::int64_t a = 0; a < k; ++a) products[j * k + a] = sum[a * inner + j];
      });
    }
    for (std::int64_t slot = 0; slot < n_blocks; ++slot) {
      violation += sums[3 * slot];
      absolute += sums[3 * slot + 1];
      dot += sums[3 * slot + 2];
    }
  }

 private:
  const T* line(std::int64_t begin) const { return data + begin * (form == Data::by_rows ? ld_data : 1); }

  // cross = data other - l1, for a block of rows.
  void multiply(std::int64_t begin, std::int64_t n, T* cross) const {
    const T penalty = static_cast<T>(l1);
    if (form == Data::products) {
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t a = 0; a < k; ++a) cross[i * k + a] = other[(begin + i) * ld_other + a] - penalty;
      return;
    }
    // The transpose of the products: BLAS is faster where the long side is the contiguous one.
    const auto turned = std::make_unique_for_overwrite<T[]>(k * n);
    gemm(Order::transposed, form == Data::by_rows ? Order::transposed : Order::plain, k, n, inner, other, k, line(begin),
         ld_data, turned.get(), n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t a = 0; a < k; ++a) cross[i * k + a] = turned[a * n + i] - penalty;
  }

  void extrapolate(std::int64_t begin, std::int64_t n) const {
    const T step = static_cast<T>(momentum);
    for (std::int64_t i = begin * k; i < (begin + n) * k; ++i)
      chosen[i] = std::max(updated[i] + step * (updated[i] - old[i]), T(0));
  }

  void add(std::int64_t begin, std::int64_t n, const T* cross, double* sum) const {
    double sizes = 0, products_ = 0;
    for (std::int64_t i = 0; i < n * k; ++i) {
      sizes += std::abs(static_cast<double>(cross[i]));
      products_ += (cross[i] + l1) * updated[begin * k + i];
    }
    sum[1] = sizes;
    sum[2] = products_;
  }
};

template <class T>
void factor_update(FactorUpdate<T>& update, int n_threads) {
  update.run(n_threads);
}

}  // namespace nonneg
