#pragma once

// Ids that do not mix, and arrays that only their own id can index.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold {

template <class Tag>
struct Id {
    std::uint32_t value = 0;
    friend constexpr auto operator<=>(Id, Id) = default;
};

/// All ids from 0 to count - 1: `for (LinkId link : ids<LinkId>(graph.links().size()))`.
template <class IdType>
class ids {
  public:
    struct iterator {
        std::uint32_t value;
        constexpr IdType operator*() const { return IdType{value}; }
        constexpr iterator& operator++() {
            ++value;
            return *this;
        }
        friend constexpr bool operator==(iterator, iterator) = default;
    };

    constexpr explicit ids(std::size_t count) : count_(static_cast<std::uint32_t>(count)) {}
    [[nodiscard]] constexpr iterator begin() const { return {0}; }
    [[nodiscard]] constexpr iterator end() const { return {count_}; }

  private:
    std::uint32_t count_;
};

template <class IdType, class T>
class IdVector {
  public:
    IdVector() = default;
    explicit IdVector(std::size_t size, const T& value = T{}) : values_(size, value) {}

    T& operator[](IdType id) { return values_[id.value]; }
    const T& operator[](IdType id) const { return values_[id.value]; }

    IdType push_back(T value) {
        const IdType id{static_cast<std::uint32_t>(values_.size())};
        values_.push_back(std::move(value));
        return id;
    }

    [[nodiscard]] std::size_t size() const { return values_.size(); }
    [[nodiscard]] bool empty() const { return values_.empty(); }
    [[nodiscard]] ids<IdType> keys() const { return ids<IdType>(values_.size()); }
    void reserve(std::size_t size) { values_.reserve(size); }
    void resize(std::size_t size) { values_.resize(size); }

    auto begin() { return values_.begin(); }
    auto end() { return values_.end(); }
    [[nodiscard]] auto begin() const { return values_.begin(); }
    [[nodiscard]] auto end() const { return values_.end(); }

  private:
    std::vector<T> values_;
};

}  // namespace fourfold
