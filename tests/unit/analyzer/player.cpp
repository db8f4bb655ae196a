// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analyzer/player.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rankscope::test {
namespace {
constexpr int64_t kLaunchGap = 2 * kUs;  // launch gap
}

Player::Player(int ranks, int ranksPerHost, const std::string& links)
    : trace(ranks, ranksPerHost),
      m_compute(static_cast<size_t>(ranks), 0),
      m_communication(m_compute),
      m_starts(m_compute) {
    if (!links.empty()) trace.links(links);
}

int Player::communicator(std::vector<int> ranks) {
    m_members.push_back(ranks);
    return trace.communicator(std::move(ranks));
}

void Player::compute(double ns, const std::string& name, int64_t grid) {
    compute(std::vector<double>(m_compute.size(), ns), name, grid);
}

void Player::compute(const std::vector<double>& ns, const std::string& name, int64_t grid) {
    for (size_t r = 0; r < m_compute.size(); ++r) {
        trace.kernel(static_cast<int>(r), m_compute[r] + kLaunchGap, static_cast<int64_t>(ns[r]), name, grid);
        m_compute[r] += kLaunchGap + static_cast<int64_t>(ns[r]);
    }
}

int64_t Player::arrivalsEnd(int communicator, store::Op op, double bytes, double transferNs) {
    std::vector<int64_t> arrivals;
    for (int rank : m_members[static_cast<size_t>(communicator)]) {
        const auto r = static_cast<size_t>(rank);
        arrivals.push_back(std::max(m_compute[r], m_communication[r]) + kLaunchGap);
    }
    const int64_t end =
        trace.collective(communicator, op, static_cast<int64_t>(bytes), arrivals, static_cast<int64_t>(transferNs));
    for (int rank : m_members[static_cast<size_t>(communicator)]) m_communication[static_cast<size_t>(rank)] = end;
    return end;
}

void Player::beside(int communicator, store::Op op, double bytes, double transferNs) {
    arrivalsEnd(communicator, op, bytes, transferNs);
}

void Player::blocking(int communicator, store::Op op, double bytes, double transferNs) {
    const int64_t end = arrivalsEnd(communicator, op, bytes, transferNs);
    for (int rank : m_members[static_cast<size_t>(communicator)]) m_compute[static_cast<size_t>(rank)] = end;
}

void Player::blocking(const std::vector<int>& communicators, store::Op op, double bytes,
                      const std::vector<double>& transferNs) {
    for (size_t i = 0; i < communicators.size(); ++i)
        blocking(communicators[i], op, bytes, transferNs[i % transferNs.size()]);
}

void Player::meet() {
    for (size_t r = 0; r < m_compute.size(); ++r) m_compute[r] = std::max(m_compute[r], m_communication[r]);
}

void Player::endStep() {
    meet();
    compute(50e3, "adam", 32);
    for (size_t r = 0; r < m_compute.size(); ++r)
        trace.step(static_cast<int>(r), m_step, m_starts[r], m_compute[r] - m_starts[r], m_step == 0);
    m_starts = m_compute;
    ++m_step;
}

std::string Player::found(const report::Report& report) {
    std::string text;
    for (const job::Finding& f : report.findings)
        text += (text.empty() ? "" : " ") + f.id + (f.verdict == job::Verdict::inconclusive ? "?" : "") +
                fmt::format("[{}]", fmt::join(f.ranks, " "));
    return text;
}

}  // namespace rankscope::test
