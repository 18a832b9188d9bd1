// Python module of the compiled core: arrays are checked here, the GIL is released, and no Python object goes further.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

#include "operations.hpp"

namespace nb = nanobind;
using namespace nonneg;
using std::int64_t;

namespace {

const Table* table = nullptr;  // of the instruction set in use

template <class T>
const Operations<T>& operations() {
  if constexpr (std::is_same_v<T, double>) return table->float64;
  else return table->float32;
}
template <class T, class I>
const IndexedOperations<T, I>& indexed() {
  if constexpr (std::is_same_v<I, std::int32_t>) return operations<T>().narrow;
  else return operations<T>().wide;
}

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

void expect(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

template <class A>
int64_t rows(const A& array) {
  return static_cast<int64_t>(array.shape(0));
}
template <class A>
int64_t columns(const A& array) {
  return static_cast<int64_t>(array.shape(1));
}

template <class A, class B>
void expect_same_shape(const A& a, const B& b) {
  expect(rows(a) == rows(b) && columns(a) == columns(b), "the arrays must have the same shape");
}

// Distance of the rows of an array that lie one after another; 0 where they do not. A single row or column has no
// distance of its own.
template <class T>
int64_t row_distance(const Strided<T>& array) {
  const int64_t n = rows(array), k = columns(array);
  const int64_t along = k > 1 ? array.stride(1) : 1, across = n > 1 ? array.stride(0) : k;
  return along == 1 && across >= k ? std::max<int64_t>(across, 1) : 0;
}
template <class T>
int64_t column_distance(const Strided<T>& array) {
  const int64_t n = rows(array), k = columns(array);
  const int64_t along = n > 1 ? array.stride(0) : 1, across = k > 1 ? array.stride(1) : n;
  return along == 1 && across >= n ? std::max<int64_t>(across, 1) : 0;
}

void expect_components(const Vector<const int64_t>& order, int64_t k) {
  for (int64_t turn = 0; turn < rows(order); ++turn)
    expect(0 <= order.data()[turn] && order.data()[turn] < k, "order names a component that does not exist");
}

// Indices of a CSR pattern are trusted by the loops, so that they are checked by whoever builds the matrix; here only
// what is cheap.
template <class I>
void expect_pattern(const Vector<const I>& indptr, const Vector<const I>& indices, int64_t n_rows) {
  expect(rows(indptr) == n_rows + 1, "indptr must have one entry more than there are rows");
  expect(static_cast<int64_t>(indptr.data()[n_rows]) <= rows(indices), "indptr points beyond the indices");
}

template <class T>
double hals_passes(Matrix<T> out, Matrix<const T> initial, Matrix<const T> gram, Matrix<const T> cross,
                   Vector<const int64_t> order, int max_passes, double shrink, int64_t block, int n_threads) {
  const int64_t n = rows(out), k = columns(out);
  expect_same_shape(out, initial);
  expect_same_shape(out, cross);
  expect(rows(gram) == k && columns(gram) == k, "gram must be k x k");
  expect_components(order, k);
  expect(block > 0, "block must be above 0");
  nb::gil_scoped_release release;
  return operations<T>().hals_passes(out.data(), initial.data(), gram.data(), cross.data(), n, k, order.data(), rows(order),
                                     max_passes, shrink, block, n_threads);
}

template <class T, class I>
double hals_listed(Matrix<T> factor, Matrix<const double> base, double sign, Matrix<const T> other, Vector<const I> indptr,
                   Vector<const I> indices, Matrix<const T> cross, Vector<const int64_t> order, int max_passes,
                   double shrink, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor);
  expect_same_shape(factor, cross);
  expect(rows(base) == k && columns(base) == k && columns(other) == k, "base must be k x k, other n x k");
  expect_pattern(indptr, indices, n);
  expect_components(order, k);
  nb::gil_scoped_release release;
  const ListedGrams<T, I> grams{base.data(), sign, other.data(), indptr.data(), indices.data(), k};
  return indexed<T, I>().hals_listed(factor.data(), grams, cross.data(), n, order.data(), rows(order), max_passes, shrink,
                                     n_threads);
}

template <class T, class I>
void listed_grams(Matrix<const double> base, double sign, Matrix<const T> other, Vector<const I> indptr,
                  Vector<const I> indices, Cube<T> out, int n_threads) {
  const int64_t n = static_cast<int64_t>(out.shape(0)), k = columns(other);
  expect(rows(base) == k && columns(base) == k, "base must be k x k");
  expect(static_cast<int64_t>(out.shape(1)) == k && static_cast<int64_t>(out.shape(2)) == k, "out must be n x k x k");
  expect_pattern(indptr, indices, n);
  nb::gil_scoped_release release;
  const ListedGrams<T, I> grams{base.data(), sign, other.data(), indptr.data(), indices.data(), k};
  indexed<T, I>().listed_grams(grams, out.data(), n, n_threads);
}

template <class T>
void block_pivoting(Matrix<T> factor, Cube<const double> grams, Matrix<const T> cross, Vector<bool> unsolved,
                    int64_t max_pivots, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor), n_grams = static_cast<int64_t>(grams.shape(0));
  expect_same_shape(factor, cross);
  expect(n_grams == 1 || n_grams == n, "there must be one Gram matrix, or one per row");
  expect(static_cast<int64_t>(grams.shape(1)) == k && static_cast<int64_t>(grams.shape(2)) == k, "grams must be k x k");
  expect(rows(unsolved) == n, "there must be one flag per row");
  nb::gil_scoped_release release;
  operations<T>().block_pivoting(factor.data(), grams.data(), n_grams > 1, cross.data(), unsolved.data(), n, k, max_pivots,
                                 n_threads);
}

template <class T, class I>
void csr_times_(Vector<const I> indptr, Vector<const I> indices, Vector<const T> data, Matrix<const T> B, Matrix<T> out,
                int n_threads) {
  expect_pattern(indptr, indices, rows(out));
  expect(rows(data) == rows(indices), "there must be one index per entry");
  expect(columns(B) == columns(out), "the factor and the product must have the same number of columns");
  nb::gil_scoped_release release;
  indexed<T, I>().csr_times(indptr.data(), indices.data(), data.data(), rows(out), B.data(), columns(B), out.data(),
                            n_threads);
}

template <class T, class I>
void sampled_product(Vector<const I> indptr, Vector<const I> indices, Matrix<const T> A, Matrix<const T> B, Vector<T> out,
                     int n_threads) {
  expect_pattern(indptr, indices, rows(A));
  expect(rows(out) == rows(indices) && columns(A) == columns(B), "the factors or the result have another shape");
  nb::gil_scoped_release release;
  indexed<T, I>().csr_sampled_product(indptr.data(), indices.data(), rows(A), A.data(), B.data(), columns(A), out.data(),
                                      n_threads);
}

// Returns violation, absolute, dot; see factor_update.hpp.
template <class T>
nb::tuple factor_update(std::optional<Strided<const T>> data, Strided<const T> other, Matrix<const T> gram,
                        Vector<const int64_t> order, int max_passes, double shrink, double l1, Matrix<const T> initial,
                        std::optional<Matrix<const T>> old, double momentum, int64_t block, Matrix<T> updated,
                        Matrix<T> chosen, Matrix<T> chosen_gram, std::optional<Matrix<T>> updated_gram,
                        std::optional<Matrix<T>> products, int n_threads) {
  using Update = FactorUpdate<T>;
  const int64_t n = rows(updated), k = columns(updated);
  Update update{};
  update.form = Update::Data::products;
  update.n_rows = n, update.k = k;
  for (const auto& array : {&initial}) expect_same_shape(*array, updated);
  expect_same_shape(chosen, updated);
  expect(!old || (rows(*old) == n && columns(*old) == k), "old must have the shape of the factor");
  expect(rows(gram) == k && columns(gram) == k && rows(chosen_gram) == k && columns(chosen_gram) == k, "gram must be k x k");
  expect(!updated_gram || (rows(*updated_gram) == k && columns(*updated_gram) == k), "updated_gram must be k x k");
  const int64_t ld_other = row_distance(other);
  expect(columns(other) == k && ld_other > 0, "other must have k columns, by rows");
  expect_components(order, k);
  expect(block > 0, "block must be above 0");
  if (data) {
    const int64_t by_rows = row_distance(*data), by_columns = column_distance(*data);
    expect(by_rows || by_columns, "data must be by rows or by columns");
    expect(rows(*data) == n && rows(other) == columns(*data) && ld_other == k, "data and other do not fit");
    update.form = by_rows ? Update::Data::by_rows : Update::Data::by_columns;
    update.data = data->data(), update.inner = columns(*data), update.ld_data = by_rows ? by_rows : by_columns;
  } else {
    expect(rows(other) == n, "there must be one row of products per row of the factor");
  }
  expect(!products || (data && rows(*products) == k && columns(*products) == update.inner), "products must be k x inner");
  update.other = other.data(), update.ld_other = ld_other;
  update.gram = gram.data(), update.order = order.data(), update.n_order = rows(order);
  update.max_passes = max_passes, update.shrink = shrink, update.l1 = l1, update.momentum = momentum;
  update.initial = initial.data(), update.old = old ? old->data() : nullptr;
  update.transposed_products = products.has_value(), update.block = block;
  update.updated = updated.data(), update.chosen = chosen.data(), update.chosen_gram = chosen_gram.data();
  update.updated_gram = updated_gram ? updated_gram->data() : nullptr;
  update.products = products ? products->data() : nullptr;
  {
    nb::gil_scoped_release release;
    operations<T>().factor_update(update, n_threads);
  }
  return nb::make_tuple(update.violation, update.absolute, update.dot);
}

template <class T>
void multiply_(Strided<const T> A, bool transposed, Matrix<const T> B, Matrix<T> out, int64_t size, int n_threads) {
  const int64_t m = rows(out), n = columns(out), p = rows(B);
  const int64_t lda = row_distance(A);
  expect(lda > 0 && size > 0, "A must be by rows");
  expect((transposed ? columns(A) : rows(A)) == m && (transposed ? rows(A) : columns(A)) == p && columns(B) == n,
         "the shapes of the product do not fit");
  nb::gil_scoped_release release;
  operations<T>().multiply(transposed ? Order::transposed : Order::plain, A.data(), lda, B.data(), out.data(), m, n,
                           p, size, n_threads);
}

template <class T>
void inner_product_(Matrix<const T> A, Matrix<const T> B, Matrix<T> out, int64_t size, int n_threads) {
  expect(rows(A) == rows(B) && rows(out) == columns(A) && columns(out) == columns(B) && size > 0,
         "the shapes of the product do not fit");
  nb::gil_scoped_release release;
  operations<T>().inner_product(A.data(), B.data(), out.data(), rows(A), columns(A), columns(B), size, n_threads);
}

template <class T>
double absolute_sum(Vector<const T> x, int n_threads) {
  nb::gil_scoped_release release;
  return operations<T>().absolute_sum(x.data(), rows(x), n_threads);
}

template <class T>
double product_sum(Vector<const T> x, Vector<const T> y, int n_threads) {
  expect(rows(x) == rows(y), "the arrays must have the same length");
  nb::gil_scoped_release release;
  return operations<T>().product_sum(x.data(), y.data(), rows(x), n_threads);
}

template <class T>
void extrapolate(Vector<const T> x, Vector<const T> old, double momentum, Vector<T> out, int n_threads) {
  expect(rows(x) == rows(old) && rows(x) == rows(out), "the arrays must have the same length");
  nb::gil_scoped_release release;
  operations<T>().extrapolate(x.data(), old.data(), momentum, out.data(), rows(x), n_threads);
}

template <class T>
void newton_targets_(Matrix<const T> factor, Matrix<const T> gradient, Matrix<const T> diagonal, Matrix<const T> correlations,
                     Vector<const int64_t> order, double l1, double l2, double least, Matrix<T> direction, Matrix<T> notes,
                     int n_threads) {
  const int64_t n = rows(factor), k = columns(factor);
  for (const auto* array : {&gradient, &diagonal}) expect_same_shape(*array, factor);
  expect_same_shape(direction, factor);
  expect(rows(correlations) == k && columns(correlations) == k, "correlations must be k x k");
  expect(rows(notes) == 4 && columns(notes) == n, "notes must be 4 x n");
  expect_components(order, k);
  nb::gil_scoped_release release;
  operations<T>().newton_targets(factor.data(), gradient.data(), diagonal.data(), correlations.data(), n, k, order.data(),
                                 rows(order), l1, l2, least, direction.data(), notes.data(), n_threads);
}

// What is added to: at_start, at_end, total, sums, curvatures, gram; see kl_newton.hpp.
template <class T>
void kl_newton_(Matrix<const T> x, Vector<const T> weights, Matrix<const T> W, Matrix<const T> before, double momentum,
                double fraction, Matrix<const T> Ht, Matrix<const T> H, Matrix<const T> squares, Vector<const T> means,
                Matrix<const T> correlations, double l1, double l2, double lower_bound, double least, double tiny,
                double most, double shortest, int tries, int64_t tiles, Matrix<T> new_W, Vector<double> at_start,
                Vector<double> at_end, Vector<double> total, Matrix<T> sums, Matrix<T> curvatures, Matrix<T> gram,
                int n_threads) {
  const int64_t n_rows = rows(x), n = columns(x), k = columns(W);
  expect(rows(W) == n_rows && rows(weights) == n_rows, "there must be one row and one weight per row of the data");
  expect_same_shape(before, W);
  expect_same_shape(new_W, W);
  expect(rows(Ht) == n && columns(Ht) == k && rows(H) == k && columns(H) == n, "Ht must be n x k, H its transpose");
  expect_same_shape(squares, Ht);
  expect_same_shape(sums, Ht);
  expect(rows(correlations) == k && columns(correlations) == k && rows(means) == k && rows(total) == k, "there must be k means");
  expect(rows(curvatures) == n && columns(curvatures) == k + 1 && rows(gram) == k && columns(gram) == k,
         "curvatures must be n x (k + 1), gram k x k");
  expect(rows(at_start) == n && rows(at_end) == n && tiles > 0, "there must be one loss per column");
  nb::gil_scoped_release release;
  const KlNewton<T> pass{n_rows, n, k, x.data(), weights.data(), W.data(), before.data(), momentum, fraction, Ht.data(), H.data(),
                         squares.data(), means.data(), correlations.data(), l1, l2, lower_bound, least, tiny, most, shortest,
                         tries, tiles, new_W.data(), at_start.data(), at_end.data(), total.data(), sums.data(),
                         curvatures.data(), gram.data()};
  operations<T>().kl_newton(pass, n_threads);
}

template <class T>
BetaBlock<T> beta_block(const Matrix<const T>& x, const T* v, const Matrix<const T>& weights, double beta, double lower_bound) {
  expect(columns(weights) == columns(x) && (rows(weights) == 1 || rows(weights) == rows(x)), "weights do not fit");
  return {x.data(), v, weights.data(), rows(weights) > 1, rows(x), columns(x), beta, static_cast<T>(lower_bound)};
}

template <class T>
void ratio_terms_(Matrix<const T> x, Matrix<T> v, std::optional<Matrix<T>> power, double beta, double lower_bound) {
  expect_same_shape(x, v);
  expect(power ? rows(*power) == rows(x) && columns(*power) == columns(x) : beta == 1, "power must have the shape of x");
  nb::gil_scoped_release release;
  operations<T>().ratio_terms(x.data(), v.data(), power ? power->data() : nullptr, rows(x) * columns(x), beta,
                              static_cast<T>(lower_bound));
}

template <class T>
void row_losses_(Matrix<const T> x, Matrix<const T> v, Matrix<const T> weights, double beta, double lower_bound,
                 Vector<double> losses) {
  expect_same_shape(x, v);
  expect(rows(losses) == rows(x), "there must be one loss per row");
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().row_losses(block, losses.data());
}

template <class T>
void column_losses_(Matrix<const T> x, Matrix<const T> v, Matrix<const T> weights, Vector<const double> row_weights, double beta,
                    double lower_bound, Vector<double> losses) {
  expect_same_shape(x, v);
  expect(rows(losses) == columns(x) && rows(row_weights) == rows(x), "there must be one loss per column, one weight per row");
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().column_losses(block, row_weights.data(), losses.data());
}

template <class T>
void newton_terms_(Matrix<const T> x, Matrix<const T> v, Matrix<const T> weights, double beta, double lower_bound,
                   double curvature_bound, Vector<const bool> exact, Matrix<T> slope, Matrix<T> curvature) {
  expect_same_shape(x, v);
  expect_same_shape(x, slope);
  expect_same_shape(x, curvature);
  expect(rows(exact) == rows(x), "there must be one flag per row");
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().newton_terms(block, curvature_bound, exact.data(), slope.data(), curvature.data());
}

template <class T>
void line_search_(Matrix<const T> x, Matrix<T> v, Matrix<const T> d, Matrix<const T> weights, double beta, double lower_bound,
                  Vector<const double> linear, Vector<const double> quadratic, Vector<const double> slopes, int tries,
                  Vector<double> steps) {
  expect_same_shape(x, v);
  expect_same_shape(x, d);
  for (const auto* array : {&linear, &quadratic, &slopes}) expect(rows(*array) == rows(x), "there must be one number per row");
  expect(rows(steps) == rows(x), "there must be one step per row");
  const auto block = beta_block(x, v.data(), weights, beta, lower_bound);
  nb::gil_scoped_release release;
  operations<T>().line_search(block, v.data(), d.data(), linear.data(), quadratic.data(), slopes.data(), tries, steps.data());
}

template <class T, class I>
void kl_passes_(Vector<const I> indptr, Vector<const I> indices, Vector<const T> data, Matrix<T> factor, Matrix<const T> other,
                Matrix<const T> sums, Vector<const int64_t> order, double l1, double l2, int64_t max_rounds, int max_sweeps,
                double shrink, double tol, double lower_bound, double inverse_unit, Vector<double> logs,
                Vector<double> residuals, int n_threads) {
  const int64_t n = rows(factor), k = columns(factor);
  expect_pattern(indptr, indices, n);
  expect(rows(data) == rows(indices), "there must be one index per entry");
  expect(columns(other) == k && columns(sums) == k && (rows(sums) == 1 || rows(sums) == n), "other or sums do not fit");
  expect(rows(logs) == n && rows(residuals) == n, "there must be one number per row");
  expect_components(order, k);
  nb::gil_scoped_release release;
  const KlCoordinate<T> problem{other.data(), sums.data(), rows(sums) > 1, k, order.data(), rows(order), l1, l2, max_rounds,
                                max_sweeps, shrink, tol, lower_bound, inverse_unit};
  indexed<T, I>().kl_passes(problem, indptr.data(), indices.data(), data.data(), n, factor.data(), logs.data(),
                            residuals.data(), n_threads);
}

// Returns squared norms; see row_caps.hpp.
template <class T>
nb::tuple cap_rows_(Matrix<const T> offset, Matrix<T> product, Matrix<T> split, Matrix<T> dual, Vector<T> caps, double relax,
                    double tau, double unit, int n_threads) {
  expect_same_shape(offset, product);
  expect_same_shape(split, product);
  expect_same_shape(dual, product);
  expect(rows(caps) == rows(product), "there must be one cap per row");
  std::array<double, 4> sums;
  {
    nb::gil_scoped_release release;
    sums = operations<T>().cap_rows(offset.data(), product.data(), split.data(), dual.data(), caps.data(), rows(product),
                                    columns(product), relax, tau, unit, n_threads);
  }
  return nb::make_tuple(sums[0], sums[1], sums[2], sums[3]);
}

template <class T>
void dominating_diagonal_(Matrix<T> C, Vector<const T> weights, int64_t max_steps, int n_threads) {
  expect(rows(C) == columns(C) && rows(weights) == rows(C), "the matrix must be square, with one weight per row");
  nb::gil_scoped_release release;
  operations<T>().dominating_diagonal(C.data(), weights.data(), rows(C), max_steps, n_threads);
}

void l1_rows_(Matrix<const double> A, Matrix<const double> targets, Matrix<int64_t> bases, Matrix<double> out,
              Matrix<double> dual, Vector<int64_t> n_pivots, double tol, int64_t max_pivots, int n_threads) {
  const int64_t m = rows(A), n = columns(A);
  expect(rows(targets) == n && columns(targets) == n && rows(bases) == n && columns(bases) == n, "targets and bases must be n x n");
  expect(rows(out) == n && columns(out) == m && rows(dual) == n && columns(dual) == n && rows(n_pivots) == n,
         "the results do not fit");
  for (int64_t at = 0; at < n * n; ++at) expect(0 <= bases.data()[at] && bases.data()[at] < m, "a basis names no row of A");
  nb::gil_scoped_release release;
  table->l1_rows(A.data(), m, n, targets.data(), bases.data(), out.data(), dual.data(), n_pivots.data(), tol, max_pivots,
                 n_threads);
}

void* address_in(nb::handle capsule, const char* name) {
  void* address = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!address) throw nb::python_error();
  return address;
}

template <class T>
void use_gemm(const char* name) {
  const nb::object capsule = nb::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__")[name];
  *operations<T>().gemm = reinterpret_cast<Gemm<T>>(address_in(capsule, PyCapsule_GetName(capsule.ptr())));
}

// Use the operations of a module that was compiled for one instruction set.
void use(nb::handle capsule) {
  table = static_cast<const Table*>(address_in(capsule, table_name));
  use_gemm<double>("dgemm");
  use_gemm<float>("sgemm");
}

template <class T>
void bind(nb::module_& m) {
  m.def("hals_passes", &hals_passes<T>);
  m.def("hals_listed", &hals_listed<T, std::int32_t>);
  m.def("hals_listed", &hals_listed<T, int64_t>);
  m.def("listed_grams", &listed_grams<T, std::int32_t>);
  m.def("listed_grams", &listed_grams<T, int64_t>);
  m.def("block_pivoting", &block_pivoting<T>);
  m.def("csr_times", &csr_times_<T, std::int32_t>);
  m.def("csr_times", &csr_times_<T, int64_t>);
  m.def("sampled_product", &sampled_product<T, std::int32_t>);
  m.def("sampled_product", &sampled_product<T, int64_t>);
  m.def("factor_update", &factor_update<T>, nb::arg("data").none(), nb::arg("other"), nb::arg("gram"), nb::arg("order"),
        nb::arg("max_passes"), nb::arg("shrink"), nb::arg("l1"), nb::arg("initial"), nb::arg("old").none(),
        nb::arg("momentum"), nb::arg("block"), nb::arg("updated"), nb::arg("chosen"), nb::arg("chosen_gram"),
        nb::arg("updated_gram").none(), nb::arg("products").none(), nb::arg("n_threads"));
  m.def("multiply", &multiply_<T>);
  m.def("inner_product", &inner_product_<T>);
  m.def("absolute_sum", &absolute_sum<T>);
  m.def("product_sum", &product_sum<T>);
  m.def("extrapolate", &extrapolate<T>);
  m.def("newton_targets", &newton_targets_<T>);
  m.def("kl_newton", &kl_newton_<T>);
  m.def("ratio_terms", &ratio_terms_<T>, nb::arg("x"), nb::arg("v"), nb::arg("power").none(), nb::arg("beta"),
        nb::arg("lower_bound"));
  m.def("row_losses", &row_losses_<T>);
  m.def("column_losses", &column_losses_<T>);
  m.def("newton_terms", &newton_terms_<T>);
  m.def("line_search", &line_search_<T>);
  m.def("cap_rows", &cap_rows_<T>);
  m.def("dominating_diagonal", &dominating_diagonal_<T>);
  m.def("kl_passes", &kl_passes_<T, std::int32_t>);
  m.def("kl_passes", &kl_passes_<T, int64_t>);
}

}  // namespace

NB_MODULE(_core, m) {
  m.def("use", &use);
  m.def("l1_rows", &l1_rows_);
  m.def("instruction_sets", [] {
    nb::list found;
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.append("avx2");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
      found.append("avx512");
#endif
    return found;
  });
  bind<double>(m);
  bind<float>(m);
}
