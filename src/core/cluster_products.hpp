// Products of rows with the vector of their cluster, and the rows' sums with these products, in one read of the data.
#pragma once

#include <cstdint>

#include "data_rows.hpp"
#include "pool.hpp"

namespace nonneg {

// Rows order[starts[p] .. stops[p]) belong to cluster owners[p]; they are summed into row p of `totals`. The pieces,
// not the threads, fix the order of summation.
template <class T, class Rows>
void cluster_products(const Rows& rows, const std::int64_t* order, const std::int64_t* starts, const std::int64_t* stops,
                      const std::int64_t* owners, std::int64_t n_pieces, const T* vectors, const T* weights, T* products,
                      T* totals, int n_threads) {
  Pool::instance().run(n_pieces, n_threads, [&](std::int64_t piece) {
    const T* vector = vectors + owners[piece] * rows.n_columns;
    T* total = totals + piece * rows.n_columns;
    const auto weighted = [&](std::int64_t i) { return weights ? products[i] * weights[i] : products[i]; };
    std::int64_t p = starts[piece];
    for (; p + 2 <= stops[piece]; p += 2) {
      const std::int64_t i = order[p], j = order[p + 1];
      rows.two_dots(i, j, vector, products);
      rows.add_two(i, j, weighted(i), weighted(j), total);
    }
    if (p < stops[piece]) {
      const std::int64_t i = order[p];
      products[i] = rows.dot(i, vector);
      rows.add(i, weighted(i), total);
    }
  });
}

}  // namespace nonneg
