// Products of small matrices; exponential and polar factor of small skew ones. float64 alone.
//
// As nonneg.transforms.rotations.group makes them, for one matrix at a time. Matrices are by rows, without gaps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.hpp"

namespace nonneg {

// R rows and two registers of columns of A B, which stay in registers.
template <int R>
inline void product_tile(const double* A, std::int64_t k, const double* B, double* out, std::int64_t n) {
  constexpr int width = register_bytes / sizeof(double);
  Register<double> sums[R][2] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    Register<double> x, y;
    std::memcpy(&x, B + p * n, register_bytes);
    std::memcpy(&y, B + p * n + width, register_bytes);
    NONNEG_UNROLL
    for (int r = 0; r < R; ++r) {
      const Register<double> a = in_register(A[r * k + p]);
      sums[r][0] += a * x, sums[r][1] += a * y;
    }
  }
  NONNEG_UNROLL
  for (int r = 0; r < R; ++r) std::memcpy(out + r * n, &sums[r], 2 * register_bytes);
}

// out (m x n) = A (m x k) B (k x n); `out` is neither of them.
inline void multiply_small(const double* A, const double* B, double* out, std::int64_t m, std::int64_t k, std::int64_t n) {
  constexpr std::int64_t width = 2 * register_bytes / sizeof(double);
  const auto rows = [&](std::int64_t j) {  // the last tile overlaps the one before
    std::int64_t i = 0;
    for (; i + 4 <= m; i += 4) product_tile<4>(A + i * k, k, B + j, out + i * n + j, n);
    for (; i < m; ++i) product_tile<1>(A + i * k, k, B + j, out + i * n + j, n);
  };
  std::int64_t j = 0;
  for (; j + width <= n; j += width) rows(j);
  if (j == n) return;
  if (n >= width) return rows(n - width);
  for (std::int64_t i = 0; i < m; ++i) {
    std::fill(out + i * n, out + (i + 1) * n, 0.0);
    for (std::int64_t p = 0; p < k; ++p)
      for (j = 0; j < n; ++j) out[i * n + j] += A[i * k + p] * B[p * n + j];
  }
}

inline double inner(const double* a, const double* b, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

// Retractions along a skew m x m matrix E.
class Rotations {
 public:
  explicit Rotations(std::int64_t m) : m_(m), size_(m * m), work_(7 * size_) {}

  // out = exp(step E): a Taylor polynomial of degree 13, scaling and squaring.
  void exponential(const double* E, double step, double* out) {
    const double norm = std::abs(step) * skew_norm(E);
    const int squarings = norm > taylor_norm ? static_cast<int>(std::min(1e3, std::ceil(std::log2(norm / taylor_norm)))) : 0;
    const bool small = norm < small_norm;  // five terms are all that is seen
    double *A = at(0), *S = at(1), *S2 = at(2), *S3 = at(3), *even = at(4), *odd = at(5), *other = at(6);
    const double scale = std::ldexp(step, -squarings);
    for (std::int64_t i = 0; i < size_; ++i) A[i] = scale * E[i];
    square(A, A, S);
    square(S, S, S2);
    if (small) {
      std::fill(even, even + 2 * size_, 0.0);  // the odd part follows
    } else {
      square(S, S2, S3);
      for (std::int64_t i = 0; i < size_; ++i) {
        other[i] = S[i] / 40320 + S2[i] / 3628800 + S3[i] / 479001600;
        A[i] = S[i] / 362880 + S2[i] / 39916800 + S3[i] / 6227020800;
      }
      add_identity(other, 1.0 / 720);
      add_identity(A, 1.0 / 5040);
      square(S3, other, even);
      square(S3, A, odd);
      for (std::int64_t i = 0; i < size_; ++i) A[i] = scale * E[i];
    }
    for (std::int64_t i = 0; i < size_; ++i) even[i] += S[i] / 2 + S2[i] / 24, odd[i] += S[i] / 6 + S2[i] / 120;
    add_identity(even, 1);
    add_identity(odd, 1);
    square(A, odd, out);
    for (std::int64_t i = 0; i < size_; ++i) out[i] += even[i];
    for (int turn = 0; turn < squarings; ++turn) {
      square(out, out, even);
      std::copy(even, even + size_, out);
    }
  }

  // out = the orthogonal matrix closest to I + step E, by Newton-Schulz iterations.
  void polar(const double* E, double step, double* out) {
    double *A = at(0), *S = at(1), *B = at(2);
    const double bound = std::abs(step) * skew_norm(E);
    for (std::int64_t i = 0; i < size_; ++i) A[i] = step * E[i];
    square(A, A, S);
    add_identity(A, 1);
    if (bound * bound < 0.3) {
      // The beginning of the binomial series of (I - E^2)^(-1/2) saves some steps.
      square(S, S, B);
      for (std::int64_t i = 0; i < size_; ++i) B[i] = 0.5 * S[i] + 0.375 * B[i];
      add_identity(B, 1);
      square(A, B, out);
    } else {
      const double scale = 1 / std::sqrt(1 + largest_row(S));
      for (std::int64_t i = 0; i < size_; ++i) out[i] = scale * A[i];
    }
    for (int turn = 0; turn < 200; ++turn) {
      for (std::int64_t i = 0; i < m_; ++i)
        for (std::int64_t j = 0; j < m_; ++j) A[i * m_ + j] = out[j * m_ + i];
      square(A, out, S);
      double error = 0;
      for (std::int64_t i = 0; i < m_; ++i)
        for (std::int64_t j = 0; j < m_; ++j) error = std::max(error, std::abs(S[i * m_ + j] - (i == j)));
      for (std::int64_t i = 0; i < size_; ++i) S[i] *= -0.5;
      add_identity(S, 1.5);
      square(out, S, B);
      std::copy(B, B + size_, out);
      if (!(error > enough)) break;  // the error is squared by the step just made
    }
  }

 private:
  static constexpr double taylor_norm = 0.35, small_norm = 5e-3, enough = 1e-8;

  double* at(int which) { return &work_[which * size_]; }
  void square(const double* A, const double* B, double* out) const { multiply_small(A, B, out, m_, m_, m_); }
  void add_identity(double* A, double factor) const {
    for (std::int64_t i = 0; i < m_; ++i) A[i * (m_ + 1)] += factor;
  }
  double largest_row(const double* A) const {
    double largest = 0;
    for (std::int64_t i = 0; i < m_; ++i) {
      double total = 0;
      for (std::int64_t j = 0; j < m_; ++j) total += std::abs(A[i * m_ + j]);
      largest = std::max(largest, total);
    }
    return largest;
  }
  // A bound on the spectral norm of a skew matrix.
  double skew_norm(const double* E) const { return std::min(largest_row(E), std::sqrt(0.5 * inner(E, E, size_))); }

  std::int64_t m_, size_;
  std::vector<double> work_;
};

}  // namespace nonneg
