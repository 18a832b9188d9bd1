// Table of operations: what a build for one instruction set offers to the Python module.
//
// Every build is a library of its own, so that no function of the standard library that was compiled for newer
// processors can end up in the code for older ones.
#pragma once

#include <cstdint>

#include "beta_divergence.hpp"
#include "blas.hpp"
#include "block_pivoting.hpp"
#include "cluster_products.hpp"
#include "csr.hpp"
#include "data_rows.hpp"
#include "dominating_diagonal.hpp"
#include "factor_update.hpp"
#include "frame_rows.hpp"
#include "hals.hpp"
#include "kl_coordinate.hpp"
#include "kl_newton.hpp"
#include "l1_simplex.hpp"
#include "majorization_equalization.hpp"
#include "nearest_centroid.hpp"
#include "newton_targets.hpp"
#include "pool.hpp"
#include "products.hpp"
#include "row_caps.hpp"
#include "row_grams.hpp"
#include "self_dictionary.hpp"
#include "simplex.hpp"
#include "threshold_decode.hpp"
#include "transforms.hpp"
#include "tridiagonal.hpp"
#include "weighted_rows.hpp"

namespace nonneg {

// Operations with indices of type I on numbers of type T.
template <class T, class I>
struct IndexedOperations {
  decltype(&nonneg::hals_listed<T, I>) hals_listed;
  decltype(&nonneg::listed_grams<T, I>) listed_grams;
  decltype(&nonneg::csr_times<T, I, I>) csr_times;
  decltype(&nonneg::csr_sampled_product<T, I, I>) csr_sampled_product;
  decltype(&nonneg::kl_passes<T, I>) kl_passes;
  decltype(&nonneg::update_cosines<T, SparseRows<T, I>>) update_cosines;
  decltype(&nonneg::cluster_products<T, SparseRows<T, I>>) cluster_products;
};

// Names of the operations on numbers of type T: members of the table here, its entries in kernels.cpp.
// clang-format off
#define NONNEG_OPERATIONS(X)                                                                                    \
  X(hals_passes) X(block_pivoting) X(factor_update) X(multiply) X(inner_product) X(newton_targets) X(kl_newton) \
  X(ratio_terms) X(row_losses) X(column_losses) X(newton_terms) X(line_search) X(cap_rows)                      \
  X(dominating_diagonal) X(simplex_pivoting) X(threshold_decode) X(sums_of_squares) X(hals_weighted)
// clang-format on

template <class T>
struct Operations {
  Gemm<T>* gemm;  // where the address of BLAS is written
  IndexedOperations<T, std::int32_t> narrow;
  IndexedOperations<T, std::int64_t> wide;
  decltype(&nonneg::update_cosines<T, DenseRows<T>>) update_cosines;
  decltype(&nonneg::cluster_products<T, DenseRows<T>>) cluster_products;
#define NONNEG_MEMBER(name) decltype(&nonneg::name<T>) name;  // NOLINT(bugprone-macro-parentheses)
  NONNEG_OPERATIONS(NONNEG_MEMBER)
#undef NONNEG_MEMBER
};

// Operations of transform learning, in float64 alone.
struct TransformOperations {
  decltype(&nonneg::transform_step) step;
  decltype(&nonneg::equalize) equalize;
  decltype(&nonneg::batch_objectives) objectives;
  decltype(&nonneg::sum_of_solutions) sum_of_solutions;
};

struct Table {
  Operations<double> float64;
  Operations<float> float32;
  decltype(&nonneg::l1_rows) l1_rows;
  decltype(&nonneg::lowest_scores) lowest_scores;
  TransformOperations transforms;
};

// The name of its capsule; NONNEG_TABLE is a hash of the headers.
constexpr const char* table_name = "nonneg.operations." NONNEG_TABLE;

}  // namespace nonneg
