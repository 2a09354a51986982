#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace fourfold {

/// Numbers things in the order in which they are met.
template <class T>
class Numbers {
  public:
    std::uint32_t of(T thing) {
        const auto next = static_cast<std::uint32_t>(known_.size());
        return known_.try_emplace(std::move(thing), next).first->second;
    }

  private:
    std::map<T, std::uint32_t> known_;
};

}  // namespace fourfold
