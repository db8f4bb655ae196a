// SPDX-License-Identifier: Apache-2.0
// What is kept of calls and step marks when their records are older than the ring of light mode (`--ring`): a few bytes
// each. FORMAT.md tells how the bytes are laid out; fold_encoder.h writes them, fold_decoder.h makes records of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rankscope::capture {

/// Times are told in whole units of this: a shift apart from a microsecond, well under what a small collective takes.
inline constexpr int kFoldUnitBits = 10;
/// Peers of one call whose network transfers are told: a ring has one, a tree three.
inline constexpr size_t kFoldSends = 3;
/// Calls of one group on one stream run in one kernel, so which calls are one group is told.
enum class FoldGroup : uint8_t { none = 0, first = 1, same = 2 };

enum class FoldKind : uint8_t { none = 0, call = 1, push = 2, pop = 3, start = 4, end = 5 };

enum FoldFlags : uint8_t { foldHasPlugin = 1, foldHasSpan = 2 };

/// What the network carried to one peer for a call, over all channels.
struct FoldSend {
    int32_t peer;
    uint32_t steps;
    uint64_t bytes;
};

/// What repeats from step to step. Two items are of one key if all bytes are equal. Of a mark only kind and thread say
/// something.
struct FoldKey {
    uint32_t thread;  ///< index of its ring
    FoldKind kind;
    FoldGroup group;
    uint8_t sends;  ///< of `send`, that are told
    uint8_t flags;  ///< FoldFlags
    uint8_t op;     ///< NcclOp
    uint8_t dataType;
    uint8_t reduceOp;
    uint8_t result;
    uint8_t algorithm;
    uint8_t protocol;
    uint8_t nChannels;
    uint8_t nWarps;
    uint32_t communicator;
    int32_t peerOrRoot;
    uint64_t count;
    uint64_t stream;
    uint64_t commHash;
    int32_t pluginRank;
    uint8_t pluginVersion;
    uint8_t reserved[3];
    FoldSend send[kFoldSends];
    uint64_t domain;  ///< of a mark: 0, since ranges of the default domain alone are folded
};
inline constexpr size_t kFoldKeyWords = 14;
static_assert(sizeof(FoldKey) == kFoldKeyWords * sizeof(uint64_t));

/// A call, or the begin or end of a range that marks a step.
struct FoldItem {
    FoldKey key{};
    int64_t startNs = 0;                 ///< of the host
    int64_t deviceStartNs = 0;           ///< with foldHasSpan: first begin and last end of a channel
    int64_t deviceEndNs = 0;             ///< "
    int64_t networkNs[kFoldSends] = {};  ///< by send: the longest time of a channel on the network
    uint64_t name = 0;                   ///< of push and start: StringId
    uint64_t rangeId = 0;                ///< of start and end
};

/// What encoder and decoder both remember, so that an item that repeats costs little: keys by number, and what followed
/// the last three items when they came before.
class FoldModel {
  public:
    static constexpr size_t kKeys = 1024;
    static constexpr size_t kFields = 3 + kFoldSends;

    /// What an item tells beside its key, as differences from the items before it.
    struct Fields {
        int64_t value[kFields] = {};
    };
    struct Guess {
        uint32_t key = 0;  ///< number; 0: none
        Fields fields;
    };

    void clear() noexcept {
        m_keyCount = 0;
        m_history = 0;
        std::memset(m_lastNs, 0, sizeof m_lastNs);
        std::memset(m_deviceEnd, 0, sizeof m_deviceEnd);
        std::memset(static_cast<void*>(m_guesses), 0, sizeof m_guesses);
    }

    bool isFull() const noexcept { return m_keyCount == kKeys; }
    uint32_t keyCount() const noexcept { return m_keyCount; }
    /// `number` from 1 to keyCount().
    const FoldKey& key(uint32_t number) const noexcept { return m_keys[number - 1]; }
    uint32_t addKey(const FoldKey& key) noexcept {
        m_keys[m_keyCount] = key;
        return ++m_keyCount;
    }

    static size_t fieldCount(const FoldKey& key) noexcept {
        switch (key.kind) {
            case FoldKind::call:
                return ((key.flags & foldHasSpan) != 0 ? 3 : 1) + size_t{key.sends};
            case FoldKind::push:
            case FoldKind::end:
                return 2;
            case FoldKind::start:
                return 3;
            default:
                return 1;
        }
    }

    const Guess& guess() const noexcept { return m_guesses[place()]; }
    Fields fieldsOf(const FoldItem& item) const noexcept;
    FoldItem itemOf(const FoldKey& key, const Fields& fields) const noexcept;
    /// Behind each item, on both sides.
    void learn(uint32_t keyNumber, const FoldItem& item, const Fields& fields) noexcept;

  private:
    static constexpr size_t kGuesses = 4096;
    static constexpr size_t kThreads = 512;
    static constexpr size_t kCommunicators = 256;

    size_t place() const noexcept { return (m_history * 0x9e3779b97f4a7c15ull) >> 52; }
    static_assert(kGuesses == 1u << 12);

    uint32_t m_keyCount = 0;
    uint64_t m_history = 0;                    ///< numbers of the last three keys
    int64_t m_lastNs[kThreads] = {};           ///< start of each thread's last item, in units
    int64_t m_deviceEnd[kCommunicators] = {};  ///< of each communicator's last call, in units
    FoldKey m_keys[kKeys] = {};
    Guess m_guesses[kGuesses] = {};
};

}  // namespace rankscope::capture
