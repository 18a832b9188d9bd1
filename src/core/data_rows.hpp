// Rows of the data, dense or sparse: an operation is written once for both.
#pragma once

#include <cstdint>

namespace nonneg {

template <class T>
struct DenseRows {
  const T* data;
  std::int64_t n_rows, n_columns;

  T dot(std::int64_t i, const T* vector) const {
    const T* row = data + i * n_columns;
    T total = 0;
    for (std::int64_t f = 0; f < n_columns; ++f) total += row[f] * vector[f];
    return total;
  }
  // Two rows at once load the vector, and load and store the sum, once for both.
  void two_dots(std::int64_t i, std::int64_t j, const T* vector, T* products) const {
    const T *row = data + i * n_columns, *other = data + j * n_columns;
    T of_i = 0, of_j = 0;
    for (std::int64_t f = 0; f < n_columns; ++f) of_i += row[f] * vector[f], of_j += other[f] * vector[f];
    products[i] = of_i, products[j] = of_j;
  }
  void add(std::int64_t i, T factor, T* total) const {
    const T* row = data + i * n_columns;
    for (std::int64_t f = 0; f < n_columns; ++f) total[f] += factor * row[f];
  }
  void add_two(std::int64_t i, std::int64_t j, T of_i, T of_j, T* total) const {
    const T *row = data + i * n_columns, *other = data + j * n_columns;
    for (std::int64_t f = 0; f < n_columns; ++f) total[f] += of_i * row[f] + of_j * other[f];
  }
};

template <class T, class I>
struct SparseRows {
  const I *indptr, *indices;
  const T* data;
  std::int64_t n_rows, n_columns;

  T dot(std::int64_t i, const T* vector) const {
    T total = 0;
    for (I p = indptr[i]; p < indptr[i + 1]; ++p) total += data[p] * vector[indices[p]];
    return total;
  }
  void two_dots(std::int64_t i, std::int64_t j, const T* vector, T* products) const {
    products[i] = dot(i, vector), products[j] = dot(j, vector);
  }
  void add(std::int64_t i, T factor, T* total) const {
    for (I p = indptr[i]; p < indptr[i + 1]; ++p) total[indices[p]] += factor * data[p];
  }
  void add_two(std::int64_t i, std::int64_t j, T of_i, T of_j, T* total) const { add(i, of_i, total), add(j, of_j, total); }
};

}  // namespace nonneg
