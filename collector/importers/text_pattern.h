// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::collector {

/// A text with gaps: "PP rank {pp}, {lane}" takes what stands in place of {pp} and {lane}, `*` stands for anything.
/// The whole text must fit; each gap but the last takes as little as it can. Throws std::invalid_argument for a brace
/// without its other one, and for two gaps with nothing between them, of which nobody could tell where one ends.
class TextPattern {
  public:
    explicit TextPattern(std::string_view pattern);

    /// What the gaps took, by name; empty where the text does not fit.
    std::optional<std::map<std::string, std::string>> match(std::string_view text) const;
    /// Names of the gaps, in their order.
    std::vector<std::string> gaps() const;

  private:
    struct Part {
        std::string gap;      // empty: '*', or none
        bool isOpen = false;  // a gap or '*' stands in front of `literal`
        std::string literal;
    };
    std::vector<Part> m_parts;
};

}  // namespace rankscope::collector
