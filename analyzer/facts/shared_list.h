// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace rankscope::facts {

/// A list that its copies share until one of them is changed: most changes of a job touch the times of its graph alone,
/// and hundreds are tried. Reading it costs what reading a std::vector costs. Two threads may each change a copy of
/// their own only while a third copy, which nobody changes, outlives both (the graph that they try changes on): else
/// one may take itself for the only holder while the other still reads.
template <typename Value>
class SharedList {
  public:
    using value_type = Value;

    SharedList() = default;
    SharedList(std::vector<Value> values)  // NOLINT(google-explicit-constructor): made as a vector
        : m_values(std::make_shared<std::vector<Value>>(std::move(values))),
          m_data(m_values->data()),
          m_size(m_values->size()) {}

    SharedList(const SharedList&) = default;
    SharedList(SharedList&& other) noexcept { swap(other); }
    SharedList& operator=(SharedList other) noexcept {
        swap(other);
        return *this;
    }

    const Value& operator[](size_t at) const { return m_data[at]; }
    const Value* data() const { return m_data; }
    size_t size() const { return m_size; }
    bool empty() const { return m_size == 0; }
    const Value* begin() const { return m_data; }
    const Value* end() const { return m_data + m_size; }
    const Value& front() const { return *m_data; }
    const Value& back() const { return m_data[m_size - 1]; }
    const std::vector<Value>& values() const {
        static const std::vector<Value> kNone;
        return m_values == nullptr ? kNone : *m_values;
    }

    /// To change this copy's value `at`, which it has. Copies all values where others share them: what was seen of the
    /// list before, by reference or pointer, is then the others', or gone.
    Value& own(size_t at) {
        if (m_values.use_count() > 1) *this = SharedList(*m_values);
        return (*m_values)[at];
    }

    /// To change this copy as a whole, as own() does. As long as what is returned lives, the list itself must not be
    /// looked at: it may still tell of the values before.
    class Change {
      public:
        explicit Change(SharedList& list) : m_list(list) {
            const bool isShared = m_list.m_values.use_count() != 1;
            if (isShared) m_list = SharedList(m_list.values());
        }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;
        ~Change() {
            if (m_list.m_values == nullptr) return;
            m_list.m_data = m_list.m_values->data();
            m_list.m_size = m_list.m_values->size();
        }
        std::vector<Value>& operator*() const { return *m_list.m_values; }
        std::vector<Value>* operator->() const { return m_list.m_values.get(); }

      private:
        SharedList& m_list;
    };
    Change change() { return Change(*this); }
    void push_back(Value value) { change()->push_back(std::move(value)); }

  private:
    void swap(SharedList& other) noexcept {
        std::swap(m_values, other.m_values);
        std::swap(m_data, other.m_data);
        std::swap(m_size, other.m_size);
    }

    std::shared_ptr<std::vector<Value>> m_values;  // none: empty
    const Value* m_data = nullptr;                 // what it has, so that reading needs no way around
    size_t m_size = 0;
};

}  // namespace rankscope::facts
