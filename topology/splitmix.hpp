#pragma once

// splitmix64 (Steele, Lea, Flood 2014): hashes and random numbers that are the same on any machine.
// The n-th number after a state is mixed(state + n * golden_gamma).

#include <cstdint>

namespace fourfold {

inline constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15;

constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

constexpr std::uint64_t splitmix64(std::uint64_t state) { return mixed(state + golden_gamma); }

}  // namespace fourfold
