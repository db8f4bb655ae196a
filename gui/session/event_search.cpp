// SPDX-License-Identifier: Apache-2.0
#include "gui/session/event_search.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "gui/session/event_names.h"
#include "gui/session/name_pattern.h"

namespace rankscope::gui {
namespace {

constexpr size_t kNamesBetweenChecks = 256;

struct KeyedHit {
    int64_t key = 0;
    SearchHit hit;

    auto order() const {
        return std::tuple(key, hit.event.startNs, hit.ref.rank, hit.ref.lane, hit.ref.part, hit.ref.index);
    }
    bool operator<(const KeyedHit& other) const { return order() < other.order(); }
};

// The `limit` smallest of what is added, in memory for twice as many.
class SmallestHits {
  public:
    explicit SmallestHits(size_t limit) : m_limit(limit) {}

    void add(const KeyedHit& hit) {
        if (m_limit == 0 || (m_full && !(hit < m_worst))) return;
        m_hits.push_back(hit);
        if (m_hits.size() >= 2 * m_limit) cut();
    }
    std::vector<SearchHit> finish() {
        std::sort(m_hits.begin(), m_hits.end());
        if (m_hits.size() > m_limit) m_hits.resize(m_limit);
        std::vector<SearchHit> hits;
        hits.reserve(m_hits.size());
        for (const KeyedHit& hit : m_hits) hits.push_back(hit.hit);
        return hits;
    }

  private:
    void cut() {
        std::nth_element(m_hits.begin(), m_hits.begin() + static_cast<ptrdiff_t>(m_limit - 1), m_hits.end());
        m_hits.resize(m_limit);
        m_worst = m_hits.back();
        m_full = true;
    }

    size_t m_limit;
    std::vector<KeyedHit> m_hits;
    KeyedHit m_worst;
    bool m_full = false;
};

class Search {
  public:
    Search(const SearchRequest& request, const RunInfo& run, const std::atomic<bool>& cancelled)
        : m_request(request), m_cancelled(cancelled), m_names(run), m_hits(request.limit) {}

    SearchResult over(std::span<const RankTracksPtr> tracks) {
        const bool whole =
            matchNames() && orderNames() &&
            std::all_of(tracks.begin(), tracks.end(), [this](const RankTracksPtr& rank) { return scan(*rank); });
        m_result.cancelled = !whole && m_result.error.empty();
        if (whole) m_result.hits = m_hits.finish();
        return std::move(m_result);
    }

  private:
    bool matchNames() {
        const NamePattern pattern(m_request.pattern, m_request.caseSensitive);
        m_result.error = pattern.error();
        if (!m_result.error.empty()) return false;
        m_matches.assign(m_names.size(), 1);
        if (pattern.matchesAll()) return !m_cancelled;
        for (size_t i = 0; i < m_names.size(); ++i) {
            if (i % kNamesBetweenChecks == 0 && m_cancelled) return false;
            m_matches[i] = pattern.matches(m_names.text(i));
        }
        return true;
    }

    bool orderNames() {
        if (m_request.order != SearchOrder::name) return true;
        std::vector<uint32_t> sorted(m_names.size());
        std::iota(sorted.begin(), sorted.end(), 0);
        std::sort(sorted.begin(), sorted.end(),
                  [this](uint32_t a, uint32_t b) { return m_names.text(a) < m_names.text(b); });
        m_places.resize(sorted.size());
        for (size_t place = 0; place < sorted.size(); ++place) m_places[sorted[place]] = static_cast<uint32_t>(place);
        return !m_cancelled;
    }

    bool wantsRank(int32_t rank) const {
        return m_request.ranks.empty() ||
               std::any_of(m_request.ranks.begin(), m_request.ranks.end(),
                           [&](const RankInterval& ranks) { return ranks.first <= rank && rank <= ranks.second; });
    }

    bool scan(const RankTracks& tracks) {
        if (!wantsRank(tracks.rank)) return true;
        for (uint32_t lane = 0; lane < tracks.lanes.size(); ++lane) {
            const auto& parts = tracks.lanes[lane].parts;
            for (uint32_t part = 0; part < parts.size(); ++part)
                if (belongs(m_request.events, parts[part].table) && !scan(parts[part], {tracks.rank, lane, part, 0}))
                    return false;
        }
        return true;
    }

    bool scan(const Lane::Part& part, EventRef ref) {
        const Track& track = part.track;
        const size_t first = m_request.within ? track.firstEndingAfter(m_request.within->beginNs) : 0;
        for (size_t i = first; i < track.size(); ++i) {
            if ((i - first) % kEventsBetweenChecks == 0 && m_cancelled) return false;
            if (m_request.within && track.startNs(i) >= m_request.within->endNs) break;
            const size_t name =
                m_names.index(part.table, track.name(i), part.table == EventTable::step ? track.event(i).row : 0);
            if (!m_matches[name]) continue;
            const TrackEvent event = track.event(i);
            if (!m_request.duration.contains(event.durNs) || !belongs(m_request.events, part.table, event.kind))
                continue;
            ++m_result.found;
            if (__builtin_add_overflow(m_result.foundNs, event.durNs, &m_result.foundNs)) m_result.foundNs = INT64_MAX;
            ref.index = static_cast<uint32_t>(i);
            m_hits.add({keyOf(event, name, ref), {ref, part.table, event}});
        }
        return true;
    }

    // ~ turns the order round without overflow.
    int64_t keyOf(const TrackEvent& event, size_t name, EventRef ref) const {
        const int64_t key = ascendingKey(event, name, ref);
        return m_request.descending ? ~key : key;
    }

    int64_t ascendingKey(const TrackEvent& event, size_t name, EventRef ref) const {
        switch (m_request.order) {
            case SearchOrder::start:
                return event.startNs;
            case SearchOrder::duration:
                return event.durNs;
            case SearchOrder::name:
                return m_places[name];
            case SearchOrder::rank:
                return ref.rank;
            case SearchOrder::lane:
                return (int64_t{ref.lane} << 32) | static_cast<uint32_t>(ref.rank);
        }
        return 0;
    }

    const SearchRequest& m_request;
    const std::atomic<bool>& m_cancelled;
    EventNames m_names;
    std::vector<uint8_t> m_matches;  // by name number
    std::vector<uint32_t> m_places;  // of a name among all in order of the alphabet
    SmallestHits m_hits;
    SearchResult m_result;
};

}  // namespace

SearchResult searchEvents(const SearchRequest& request, const RunInfo& run, std::span<const RankTracksPtr> tracks,
                          const std::atomic<bool>& cancelled) {
    return Search(request, run, cancelled).over(tracks);
}

}  // namespace rankscope::gui
