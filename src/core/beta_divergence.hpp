// Elementwise parts of the beta-divergences of data x from a model v, over rows of a block.
//
// The products with the factors around them are BLAS's. The model is at least a lower bound where it is divided by.
// The special cases 1 (Kullback-Leibler), 0 (Itakura-Saito) and 2 need no powers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "logarithm.hpp"

namespace nonneg {

enum class Beta { kullback_leibler, itakura_saito, squares, other };

// Call work<kind>() for the kind of divergence.
template <class Work>
auto with_kind(double beta, const Work& work) {
  if (beta == 1) return work.template operator()<Beta::kullback_leibler>();
  if (beta == 0) return work.template operator()<Beta::itakura_saito>();
  if (beta == 2) return work.template operator()<Beta::squares>();
  return work.template operator()<Beta::other>();
}

// Rows of data and model, with weights of the entries: one row of them for all, or one for each.
template <class T>
struct BetaBlock {
  const T* x;
  const T* v;
  const T* weights;
  bool own_weights;
  std::int64_t n_rows, n;
  double beta;
  T lower_bound;

  const T* weights_of(std::int64_t i) const { return weights + (own_weights ? i * n : 0); }
};

inline double quick_power(double value, double exponent) { return quick_exp(exponent * quick_log(value)); }

template <Beta kind, class T>
inline double divergence(T x, T v, double beta, T lower_bound) {
  const double entry = x, value = std::max(v, lower_bound);
  if constexpr (kind == Beta::kullback_leibler) {
    return NONNEG_AS_WRITTEN((value - entry) + entry * log_ratio(entry, value));
  } else if constexpr (kind == Beta::itakura_saito) {
    const double ratio = entry / value;
    return NONNEG_AS_WRITTEN((ratio - 1) - quick_log(std::max(ratio, 1e-300)));
  } else if constexpr (kind == Beta::squares) {
    const double gap = entry - static_cast<double>(v);
    return 0.5 * gap * gap;
  } else {
    const double power = quick_power(value, beta - 1);
    const double own = quick_power(std::max(entry, 1e-300), beta) - beta * entry * power;
    return ((beta - 1) * power * value + (entry == 0 ? 0 : own)) / (beta * (beta - 1));
  }
}

// Weighted divergence of a row.
template <Beta kind, class T>
double row_divergence(const T* x, const T* v, const T* weights, std::int64_t n, double beta, T lower_bound) {
  double total = 0;
  for (std::int64_t j = 0; j < n; ++j) total += weights[j] * divergence<kind>(x[j], v[j], beta, lower_bound);
  return total;
}

template <class T>
void row_losses(const BetaBlock<T>& b, double* losses) {
  with_kind(b.beta, [&]<Beta kind>() {
    for (std::int64_t i = 0; i < b.n_rows; ++i)
      losses[i] = row_divergence<kind>(b.x + i * b.n, b.v + i * b.n, b.weights_of(i), b.n, b.beta, b.lower_bound);
  });
}

template <class T>
void column_losses(const BetaBlock<T>& b, const double* row_weights, double* __restrict losses) {
  std::fill(losses, losses + b.n, 0.0);
  with_kind(b.beta, [&]<Beta kind>() {
    for (std::int64_t i = 0; i < b.n_rows; ++i) {
      const T *x = b.x + i * b.n, *v = b.v + i * b.n, *weights = b.weights_of(i);
      for (std::int64_t j = 0; j < b.n; ++j)
        losses[j] += row_weights[i] * (weights[j] * divergence<kind>(x[j], v[j], b.beta, b.lower_bound));
    }
  });
}

// Overwrite v by x v^(beta - 2) and, unless beta is 1, `power` by v^(beta - 1).
template <class T>
void ratio_terms(const T* x, T* __restrict v, T* __restrict power, std::int64_t size, double beta, T lower_bound) {
  with_kind(beta, [&]<Beta kind>() {
    for (std::int64_t j = 0; j < size; ++j) {
      const T value = std::max(v[j], lower_bound);
      if constexpr (kind == Beta::kullback_leibler) {
        v[j] = x[j] / value;
      } else if constexpr (kind == Beta::itakura_saito) {
        power[j] = 1 / value;
        v[j] = x[j] * power[j] * power[j];
      } else {
        const T raised = kind == Beta::squares ? T(1) : static_cast<T>(quick_power(value, beta - 2));
        power[j] = raised * value;
        v[j] = x[j] * raised;
      }
    }
  });
}

// Write the weighted first and second derivatives of the divergence with respect to v. The second one is the true
// one, or zero where that is negative, if it is to be `exact`, otherwise its mean under the model, v^(beta - 2).
template <class T>
void newton_terms(const BetaBlock<T>& b, double curvature_bound, bool exact, T* slope, T* curvature) {
  const double beta = b.beta;
  const bool bounded = 1 < beta && beta < 2;
  const T most = bounded ? static_cast<T>(std::pow(std::max<double>(curvature_bound, b.lower_bound), beta - 2))
                         : std::numeric_limits<T>::infinity();
  const T own = exact ? static_cast<T>(beta - 1) : T(1), rest = exact ? static_cast<T>(2 - beta) : T(0);
  const T lower_bound = b.lower_bound, limit = exact ? most : std::numeric_limits<T>::infinity();
  with_kind(beta, [&]<Beta kind>() {
    for (std::int64_t i = 0; i < b.n_rows; ++i) {
      const T *x = b.x + i * b.n, *v = b.v + i * b.n, *weights = b.weights_of(i);
      T* __restrict s = slope + i * b.n, * __restrict c = curvature + i * b.n;
      for (std::int64_t j = 0; j < b.n; ++j) {
        const T value = std::max(v[j], lower_bound), inverse = 1 / value;
        if constexpr (kind == Beta::kullback_leibler) {
          const T ratio = weights[j] * x[j] * inverse;
          s[j] = weights[j] - ratio;
          c[j] = ratio * inverse;
        } else if constexpr (kind == Beta::itakura_saito) {
          const T scaled = weights[j] * inverse, ratio = x[j] * inverse;
          s[j] = scaled - scaled * ratio;
          c[j] = scaled * inverse * std::max(rest * ratio + own, T(0));
        } else {
          const T power = kind == Beta::squares ? T(1) : static_cast<T>(quick_power(value, beta - 2));
          const T raised = weights[j] * power;
          s[j] = raised * (value - x[j]);
          c[j] = std::max(own * weights[j] * std::min(power, limit) + rest * raised * x[j] * inverse, T(0));
        }
      }
    }
  });
}

// A step t in (0, 1] at which a convex function with derivative slope(t), and -down at 0, has decreased; 0 without one.
template <class Slope>
double convex_search(double down, int tries, const Slope& slope) {
  if (!(down > 0)) return 0;
  double t = 1;
  for (int turn = 0; turn < tries; ++turn) {
    const double up = slope(t);
    if (up <= 0) return t;    // it still decreases there
    t *= down / (down + up);  // the chord of the derivative: exact for a parabola
    if (up <= 2 * down) return t;
  }
  return 0;
}

// Derivative of the weighted divergence of a row from v + t d along d.
template <Beta kind, class T>
double slope_along(const T* x, const T* v, const T* d, const T* weights, std::int64_t n, T t, double beta, T lower_bound) {
  T total = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const T value = std::max(v[j] + t * d[j], lower_bound);
    if constexpr (kind == Beta::kullback_leibler) total += weights[j] * d[j] * (1 - x[j] / value);
    else
      total +=
          weights[j] * d[j] * (value - x[j]) * (kind == Beta::squares ? T(1) : static_cast<T>(quick_power(value, beta - 2)));
  }
  return total;
}

// By how much the Itakura-Saito divergence of a row from v exceeds that from v + t d: one logarithm per entry instead
// of two, and no difference of sums.
template <class T>
double itakura_saito_gain(const T* x, const T* v, const T* d, const T* weights, std::int64_t n, T t, T lower_bound) {
  double total = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const double before = std::max(v[j], lower_bound), after = std::max(v[j] + t * d[j], lower_bound);
    total += weights[j] * NONNEG_AS_WRITTEN(x[j] * (after - before) / (before * after) - log_ratio(after, before));
  }
  return total;
}

// A step of a row that lowers its loss, 0 without one, by comparing losses.
template <Beta kind, class T>
double compared_losses(const T* x, const T* v, const T* d, const T* weights, std::int64_t n, double beta, T lower_bound,
                       double linear, double quadratic, double down, int tries, T* trial) {
  if (!(down > 0)) return 0;
  double t = 1, base = -1;
  for (int turn = 0; turn < tries; ++turn) {
    double gain = 0;
    if constexpr (kind == Beta::itakura_saito)
      gain = itakura_saito_gain(x, v, d, weights, n, static_cast<T>(t), lower_bound);
    if (base < 0 && !(gain > 0)) base = row_divergence<kind>(x, v, weights, n, beta, lower_bound);
    if constexpr (kind != Beta::itakura_saito) {
      for (std::int64_t j = 0; j < n; ++j) trial[j] = v[j] + static_cast<T>(t) * d[j];
      gain = base - row_divergence<kind>(x, trial, weights, n, beta, lower_bound);
    }
    gain -= t * (linear + 0.5 * quadratic * t);
    // At the end what is to be gained drowns in rounding; the direction is good all the same.
    if (gain > 0 || (down < 1e-9 * base && gain > -1e-14 * base)) return t;
    t *= 0.4;
  }
  return 0;
}

// Choose a step in (0, 1] along d for every row, move v there, and write the steps. The penalty of a row along d is
// linear t + quadratic t^2 / 2, and `slopes` the derivative of the whole at 0.
template <class T>
void line_search(const BetaBlock<T>& b, T* v, const T* d, const double* linear, const double* quadratic,
                 const double* slopes, int tries, double* steps) {
  std::vector<T> trial(b.n);
  with_kind(b.beta, [&]<Beta kind>() {
    const bool convex = 1 <= b.beta && b.beta <= 2;
    for (std::int64_t i = 0; i < b.n_rows; ++i) {
      const T *x = b.x + i * b.n, *di = d + i * b.n, *weights = b.weights_of(i);
      T* vi = v + i * b.n;
      // A search that this kind never takes is not compiled.
      if constexpr (kind != Beta::itakura_saito)
        if (convex)
          steps[i] = convex_search(-slopes[i], tries, [&](double t) {
            return slope_along<kind>(x, vi, di, weights, b.n, static_cast<T>(t), b.beta, b.lower_bound) + linear[i] +
                   quadratic[i] * t;
          });
      if constexpr (kind == Beta::itakura_saito || kind == Beta::other)
        if (!convex)
          steps[i] = compared_losses<kind>(x, vi, di, weights, b.n, b.beta, b.lower_bound, linear[i], quadratic[i],
                                           -slopes[i], tries, trial.data());
      if (steps[i] > 0)
        for (std::int64_t j = 0; j < b.n; ++j) vi[j] += static_cast<T>(steps[i]) * di[j];
    }
  });
}

}  // namespace nonneg
