#include "results/nelder_mead.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace fourfold {
namespace {

constexpr double step[] = {0.2, 0.2};

}  // namespace

TEST_CASE("Nelder-Mead walks down a bent valley to its end") {
    // Rosenbrock's function: least, 0, at (1, 1).
    const auto valley = [](std::span<const double> x) {
        return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
    };
    const Minimum found = nelder_mead(valley, {-1.2, 1}, step);
    CHECK(found.at[0] == doctest::Approx(1).epsilon(1e-3));
    CHECK(found.at[1] == doctest::Approx(1).epsilon(1e-3));
    CHECK(found.value < 1e-6);
}

TEST_CASE("Nelder-Mead finds the bottom of a kink, which has no derivative") {
    const auto kink = [](std::span<const double> x) {
        return 1 + std::abs(x[0] - 3) + 10 * std::abs(x[0] + x[1]);
    };
    const Minimum found = nelder_mead(kink, {0, 0.5}, step);
    CHECK(found.at[0] == doctest::Approx(3).epsilon(1e-3));
    CHECK(found.at[1] == doctest::Approx(-3).epsilon(1e-3));
}

TEST_CASE("Nelder-Mead stays where nothing is better, and gives the same every time") {
    const auto bowl = [](std::span<const double> x) { return x[0] * x[0] + x[1] * x[1]; };
    const Minimum stays = nelder_mead(bowl, {0, 0}, step);
    CHECK(stays.at == std::vector<double>{0, 0});
    const Minimum once = nelder_mead(bowl, {0.3, 7}, step);
    const Minimum again = nelder_mead(bowl, {0.3, 7}, step);
    CHECK(once.at == again.at);
    CHECK(once.value < 1e-6);
}

}  // namespace fourfold
