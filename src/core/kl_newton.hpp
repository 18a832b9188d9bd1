// One pass of Newton's method for the Kullback-Leibler divergence over the rows of a dense table.
//
// A tile of rows goes through the whole update while it is in cache: model, derivatives, Newton steps of the rows,
// line search, and the sums that the update of H needs. Products are BLAS's. Sums are kept for groups of tiles that
// follow from the shapes alone, and added in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "beta_divergence.hpp"
#include "blas.hpp"
#include "newton_targets.hpp"
#include "pool.hpp"

namespace nonneg {

template <class T>
struct KlNewton {
  std::int64_t n_rows, n, k;
  const T *x, *weights;               // n_rows x n, n_rows
  const T *W, *before;                // the rows and those before them, n_rows x k
  double momentum, fraction;          // of the extrapolation, which keeps at least this fraction of an entry
  const T *Ht, *H, *squares, *means;  // n x k, k x n, n x k, k
  const T* correlations;              // k x k
  double l1, l2, lower_bound, least, tiny, most;
  double shortest;  // a row with a shorter step takes a multiplicative one
  int tries;
  std::int64_t tiles;  // of a group
  T* new_W;
  double *at_start, *at_end, *total;  // losses of the columns before and after, n; sum of the rows, k
  T *sums, *curvatures, *gram;        // n x k, n x (k + 1), k x k
};

// Rows of a group of tiles are counted in these.
constexpr std::int64_t kl_tile = hals_block;

// Rows that go through a pass together: few, so that four arrays of them fit into a core's second-level cache of a
// megabyte. Where they do not, more rows share the copies that BLAS makes of H.
template <class T>
std::int64_t rows_at_once(std::int64_t n) {
  constexpr std::int64_t few = 32, cache = 1 << 20;
  return 4 * few * n * static_cast<std::int64_t>(sizeof(T)) <= cache ? few : kl_tile;
}

template <class T>
class KlTile {
 public:
  explicit KlTile(const KlNewton<T>& pass)
      : p_(pass), n_(pass.n), k_(pass.k), lower_bound_(static_cast<T>(pass.lower_bound)), order_(all(pass.k)),
        targets_(pass.correlations, pass.k, order_.data(), pass.k, static_cast<T>(pass.l1), static_cast<T>(pass.l2),
                 static_cast<T>(pass.least)),
        ones_(n_, T(1)), start_(kl_tile * k_), gradient_(kl_tile * k_), diagonal_(kl_tile * k_), direction_(kl_tile * k_),
        squared_(kl_tile * (k_ + 1)), v_(kl_tile * n_), slope_(kl_tile * n_), curvature_(kl_tile * n_), notes_(kl_tile) {}

  void update(std::int64_t begin, std::int64_t m, double* at_start, double* at_end, double* total, T* sums, T* curvatures,
              T* gram) {
    const T* x = p_.x + begin * n_;
    T* moved = p_.new_W + begin * k_;
    extrapolate_rows(begin, m);
    gemm(Order::plain, Order::plain, m, n_, k_, start_.data(), k_, p_.H, n_, v_.data(), n_);
    for (std::int64_t r = 0; r < m; ++r) {
      if (p_.momentum == 0) add_losses(x + r * n_, &v_[r * n_], p_.weights[begin + r], at_start);
      terms(x + r * n_, r);
    }
    gemm(Order::plain, Order::plain, m, k_, n_, slope_.data(), n_, p_.Ht, k_, gradient_.data(), k_);
    gemm(Order::plain, Order::plain, m, k_, n_, curvature_.data(), n_, p_.squares, k_, diagonal_.data(), k_);
    for (std::int64_t e = 0; e < m * k_; ++e) {
      gradient_[e] += static_cast<T>(p_.l1) + static_cast<T>(p_.l2) * start_[e];
      diagonal_[e] += static_cast<T>(p_.l2);
    }
    targets_.steps(start_.data(), gradient_.data(), diagonal_.data(), direction_.data(), notes_.data(), m);
    gemm(Order::plain, Order::plain, m, n_, k_, direction_.data(), k_, p_.H, n_, slope_.data(), n_);
    for (std::int64_t r = 0; r < m; ++r) move(x + r * n_, r, moved + r * k_);
    for (std::int64_t r = 0; r < m; ++r) {
      add_losses(x + r * n_, &v_[r * n_], p_.weights[begin + r], at_end);
      terms(x + r * n_, r);
      weigh(moved + r * k_, p_.weights[begin + r], r, total);
    }
    // start_ holds the weighted rows now, squared_ the weighted squares, direction_ the rows over their means.
    gemm(Order::transposed, Order::plain, n_, k_, m, slope_.data(), n_, start_.data(), k_, sums, k_, T(1));
    gemm(Order::transposed, Order::plain, n_, k_ + 1, m, curvature_.data(), n_, squared_.data(), k_ + 1, curvatures, k_ + 1,
         T(1));
    gemm(Order::transposed, Order::plain, k_, k_, m, direction_.data(), k_, moved, k_, gram, k_, T(1));
  }

 private:
  static std::vector<std::int64_t> all(std::int64_t k) {
    std::vector<std::int64_t> order(k);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  void extrapolate_rows(std::int64_t begin, std::int64_t m) {
    const T momentum = static_cast<T>(p_.momentum), fraction = static_cast<T>(p_.fraction);
    const T *W = p_.W + begin * k_, *before = p_.before + begin * k_;
    for (std::int64_t e = 0; e < m * k_; ++e)
      start_[e] = momentum > 0 ? std::max(W[e] + momentum * (W[e] - before[e]), fraction * W[e]) : W[e];
  }

  // Derivatives of the divergence with respect to row r of the model.
  void terms(const T* x, std::int64_t r) {
    const T *v = &v_[r * n_], lower_bound = lower_bound_;
    T* __restrict slope = &slope_[r * n_], * __restrict curvature = &curvature_[r * n_];
    for (std::int64_t j = 0; j < n_; ++j) {
      const T inverse = 1 / std::max(v[j], lower_bound), ratio = x[j] * inverse;
      slope[j] = 1 - ratio;
      curvature[j] = ratio * inverse;
    }
  }

  // Add the divergences of a row to those of the columns; of float32, to the precision of a model that is rounded.
  void add_losses(const T* x, const T* v, T weight, double* __restrict losses) const {
    const T lower_bound = lower_bound_;
    for (std::int64_t j = 0; j < n_; ++j) {
      const T value = std::max(v[j], lower_bound);
      const T loss = NONNEG_AS_WRITTEN((value - x[j]) + x[j] * log_ratio(x[j], value));
      losses[j] += static_cast<double>(weight) * static_cast<double>(std::max(loss, T(0)));
    }
  }

  // Move row r along its direction, and the model with it.
  void move(const T* x, std::int64_t r, T* moved) {
    const T *start = &start_[r * k_], *direction = &direction_[r * k_], *d = &slope_[r * n_];
    T* v = &v_[r * n_];
    const NewtonNotes<T>& notes = notes_[r];
    const double found = convex_search(-static_cast<double>(notes.slope), p_.tries, [&](double t) {
      return slope_along<Beta::kullback_leibler>(x, v, d, ones_.data(), n_, static_cast<T>(t), 1.0, lower_bound_) +
             notes.linear + notes.quadratic * t;
    });
    if (found < p_.shortest && notes.residual > 0) return multiplicative(x, start, v, moved);
    const T t = static_cast<T>(found);
    for (std::int64_t a = 0; a < k_; ++a) moved[a] = std::max(start[a] + t * direction[a], T(0));
    for (std::int64_t j = 0; j < n_; ++j) v[j] += t * d[j];
  }

  // The multiplicative step of a row: it never increases the loss.
  void multiplicative(const T* x, const T* start, T* v, T* moved) {
    gemm(Order::plain, Order::plain, 1, n_, k_, start, k_, p_.H, n_, v, n_);
    for (std::int64_t a = 0; a < k_; ++a) {
      const T *h = p_.H + a * n_, lower_bound = lower_bound_;
      T pull = 0, cost = static_cast<T>(p_.l1);
      for (std::int64_t j = 0; j < n_; ++j) {
        pull += x[j] / std::max(v[j], lower_bound) * h[j];
        cost += h[j];
      }
      const T tiny = static_cast<T>(p_.tiny), l2 = static_cast<T>(p_.l2);
      moved[a] = start[a] * (l2 > 0 ? 2 * pull / std::max(cost + std::sqrt(cost * cost + 4 * l2 * start[a] * pull), tiny)
                                    : std::min(pull / std::max(cost, tiny), static_cast<T>(p_.most)));
    }
    gemm(Order::plain, Order::plain, 1, n_, k_, moved, k_, p_.H, n_, v, n_);
  }

  // Weigh row r for the sums of the update of H.
  void weigh(const T* moved, T weight, std::int64_t r, double* total) {
    // A loop of its own: beside stores, which might overlap, the order of the sum would depend on the addresses.
    T mean = 0;
    for (std::int64_t a = 0; a < k_; ++a) mean += moved[a] * p_.means[a];
    for (std::int64_t a = 0; a < k_; ++a) {
      const T weighted = weight * moved[a];
      total[a] += weighted;
      start_[r * k_ + a] = weighted;
      squared_[r * (k_ + 1) + a] = weighted * moved[a];
    }
    squared_[r * (k_ + 1) + k_] = weight;
    const T scale = weight / std::max(mean, T(1e-6));
    for (std::int64_t a = 0; a < k_; ++a) direction_[r * k_ + a] = scale * moved[a];
  }

  const KlNewton<T>& p_;
  std::int64_t n_, k_;
  T lower_bound_;
  std::vector<std::int64_t> order_;
  NewtonTargets<T> targets_;
  std::vector<T> ones_, start_, gradient_, diagonal_, direction_, squared_, v_, slope_, curvature_;
  std::vector<NewtonNotes<T>> notes_;
};

template <class T>
void kl_newton(const KlNewton<T>& pass, int n_threads) {
  const std::int64_t n = pass.n, k = pass.k, size = pass.tiles * kl_tile, n_groups = (pass.n_rows + size - 1) / size;
  struct Group {
    std::vector<double> at_start, at_end, total;
    std::vector<T> sums, curvatures, gram;
  };
  std::vector<Group> groups(n_groups);
  parallel_for(pass.n_rows, size, n_threads, [&](std::int64_t begin, std::int64_t end) {
    Group& g = groups[begin / size];
    g.at_start.resize(n), g.at_end.resize(n), g.total.resize(k);
    g.sums.resize(n * k), g.curvatures.resize(n * (k + 1)), g.gram.resize(k * k);
    KlTile<T> tile(pass);
    const std::int64_t step = rows_at_once<T>(n);
    for (std::int64_t at = begin; at < end; at += step)
      tile.update(at, std::min(step, end - at), g.at_start.data(), g.at_end.data(), g.total.data(), g.sums.data(),
                  g.curvatures.data(), g.gram.data());
  });
  const auto add = [](auto* to, const auto& from, std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e) to[e] += from[e];
  };
  parallel_for(n, 64, n_threads, [&](std::int64_t begin, std::int64_t end) {
    for (const Group& g : groups) {
      add(pass.at_start, g.at_start, begin, end), add(pass.at_end, g.at_end, begin, end);
      add(pass.sums, g.sums, begin * k, end * k);
      add(pass.curvatures, g.curvatures, begin * (k + 1), end * (k + 1));
    }
  });
  for (const Group& g : groups) add(pass.total, g.total, 0, k), add(pass.gram, g.gram, 0, k * k);
}

}  // namespace nonneg
