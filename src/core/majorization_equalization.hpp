// Majorization-equalization: multiplicative updates of Itakura-Saito NMF with exponent 1 (Fevotte & Idier 2011), and the
// objectives of transform learning. float64 alone.
//
// Arrays are the paper's way round, so that frames are contiguous: data V and the inverse of the model as (M, N),
// components w as (M, K), activations h as (K, N).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "pool.hpp"
#include "rotations.hpp"

namespace nonneg {

// x = 1 / (x + offset): one division for four rows, which takes as long as ten products.
inline void invert_rows(double* x, std::int64_t m, std::int64_t n, double offset) {
  std::int64_t a = 0;
  for (; a + 4 <= m; a += 4) {
    double *first = x + a * n, *second = first + n, *third = second + n, *fourth = third + n;
    for (std::int64_t i = 0; i < n; ++i) {
      const double p = first[i] + offset, q = second[i] + offset, r = third[i] + offset, s = fourth[i] + offset;
      const double every = 1 / ((p * q) * (r * s)), pq = p * q * every, rs = r * s * every;
      first[i] = q * rs, second[i] = p * rs, third[i] = s * pq, fourth[i] = r * pq;
    }
  }
  for (std::int64_t i = a * n; i < m * n; ++i) x[i] = 1 / (x[i] + offset);
}

class MajorizationEqualization {
 public:
  MajorizationEqualization(std::int64_t m, std::int64_t n, std::int64_t k, double eps0)
      : m_(m), n_(n), k_(k), eps0_(eps0), ratio_(m * n), above_(k * n), below_(k * n), turned_(k * m) {}

  // Update both factors n_updates times; `inverse` becomes that of their model.
  void update(const double* V, double* w, double* h, std::int64_t n_updates, double* inverse) {
    invert_model(w, h, inverse);
    for (std::int64_t turn = 0; turn < n_updates; ++turn) {
      update_activations(V, w, h, inverse);
      invert_model(w, h, inverse);
      update_components(V, w, h, inverse);
      normalize(w, h);
      invert_model(w, h, inverse);
    }
  }

 private:
  // The smallest normal number, and what is added to denominators of which four are multiplied.
  static constexpr double floor = 2.2250738585072014e-308, least = 1e-75;

  // inverse = 1 / (w h + eps0)
  void invert_model(const double* w, const double* h, double* inverse) const {
    multiply_small(w, h, inverse, m_, k_, n_);
    invert_rows(inverse, m_, n_, eps0_);
  }

  void weigh(const double* V, const double* inverse) {
    for (std::int64_t i = 0; i < m_ * n_; ++i) ratio_[i] = (V[i] + eps0_) * (inverse[i] * inverse[i]);
  }

  // h *= (w' ratio) / (w' inverse)
  void update_activations(const double* V, const double* w, double* h, const double* inverse) {
    weigh(V, inverse);
    for (std::int64_t a = 0; a < m_; ++a)
      for (std::int64_t c = 0; c < k_; ++c) turned_[c * m_ + a] = w[a * k_ + c];
    multiply_small(turned_.data(), ratio_.data(), above_.data(), k_, m_, n_);
    multiply_small(turned_.data(), inverse, below_.data(), k_, m_, n_);
    invert_rows(below_.data(), k_, n_, least);
    for (std::int64_t i = 0; i < k_ * n_; ++i) h[i] *= above_[i] * below_[i];
  }

  // w *= (ratio h') / (inverse h'); two rows and two components at once spare loads.
  void update_components(const double* V, double* w, const double* h, const double* inverse) {
    weigh(V, inverse);
    for (std::int64_t a = 0; a < m_; a += 2) {
      const std::int64_t b = std::min(a + 1, m_ - 1);
      const double *over_a = &ratio_[a * n_], *over_b = &ratio_[b * n_], *under_a = inverse + a * n_,
                   *under_b = inverse + b * n_;
      for (std::int64_t c = 0; c < k_; c += 2) {
        const std::int64_t d = std::min(c + 1, k_ - 1);
        const double *x = h + c * n_, *y = h + d * n_;
        double above[2][2] = {}, below[2][2] = {};
        for (std::int64_t i = 0; i < n_; ++i) {
          above[0][0] += x[i] * over_a[i], below[0][0] += x[i] * under_a[i];
          above[0][1] += y[i] * over_a[i], below[0][1] += y[i] * under_a[i];
          above[1][0] += x[i] * over_b[i], below[1][0] += x[i] * under_b[i];
          above[1][1] += y[i] * over_b[i], below[1][1] += y[i] * under_b[i];
        }
        for (int r = 0; r < 2; ++r)
          for (int s = 0; s < 2; ++s)
            if (a + r < m_ && c + s < k_) w[(a + r) * k_ + c + s] *= above[r][s] / (below[r][s] + floor);
      }
    }
  }

  // Components of sum 1; the model does not change. One that vanished stays as it is.
  void normalize(double* w, double* h) const {
    for (std::int64_t c = 0; c < k_; ++c) {
      double total = 0;
      for (std::int64_t a = 0; a < m_; ++a) total += w[a * k_ + c];
      if (!(total > 0)) continue;
      for (std::int64_t a = 0; a < m_; ++a) w[a * k_ + c] /= total;
      for (std::int64_t i = 0; i < n_; ++i) h[c * n_ + i] *= total;
    }
  }

  std::int64_t m_, n_, k_;
  double eps0_;
  std::vector<double> ratio_, above_, below_, turned_;
};

// Sum of the logarithms of entry(0), ..., entry(n - 1); eight factors share a logarithm where none can underflow.
template <class Entry>
double sum_of_logs(std::int64_t n, const Entry& entry) {
  constexpr double smallest = 1e-145, largest = 1e145;
  const auto within = [](double x) { return smallest < x && x < largest; };
  double total = 0;
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const double first = (entry(i) * entry(i + 1)) * (entry(i + 2) * entry(i + 3));
    const double second = (entry(i + 4) * entry(i + 5)) * (entry(i + 6) * entry(i + 7));
    if (within(first) && within(second)) total += std::log(first * second);
    else
      for (std::int64_t j = i; j < i + 8; ++j) total += std::log(entry(j));
  }
  for (; i < n; ++i) total += std::log(entry(i));
  return total;
}

// L of joint diagonalization, for n entries.
inline double likelihood(const double* V, double eps0, std::int64_t n) {
  return static_cast<double>(n) + sum_of_logs(n, [&](std::int64_t i) { return V[i] + eps0; });
}

// C, L and I of transform learning, each from its own definition; they lie `stride` apart.
inline void objectives(const double* V, double eps0, const double* inverse, std::int64_t n, double* values,
                       std::int64_t stride) {
  double fit = 0, excess = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double ratio = (V[i] + eps0) * inverse[i];
    fit += ratio, excess += ratio - 1;
  }
  values[0] = fit - sum_of_logs(n, [&](std::int64_t i) { return inverse[i]; });
  values[stride] = likelihood(V, eps0, n);
  // Divergences are small where ratios are near 1, so that the logarithms are taken of these.
  values[2 * stride] = excess - sum_of_logs(n, [&](std::int64_t i) { return (V[i] + eps0) * inverse[i]; });
}

inline void batch_objectives(const double* V, double eps0, const double* inverse, std::int64_t batch, std::int64_t n,
                             double* values, int n_threads) {
  Pool::instance().run(batch, n_threads,
                       [&](std::int64_t p) { objectives(V + p * n, eps0, inverse + p * n, n, values + p, batch); });
}

// Update the factors of a batch, whose data are shared (n_data 1) or their own.
inline void equalize(const double* V, std::int64_t n_data, double eps0, double* w, double* h, std::int64_t batch,
                     std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t n_updates, double* inverse,
                     int n_threads) {
  Pool::instance().run(batch, n_threads, [&](std::int64_t p) {
    const double* data = V + (p % n_data) * m * n;
    MajorizationEqualization(m, n, k, eps0).update(data, w + p * m * k, h + p * k * n, n_updates, inverse + p * m * n);
  });
}

}  // namespace nonneg
