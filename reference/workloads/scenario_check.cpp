// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/scenario_check.h"

namespace rankscope::reference {

namespace {

class Check {
  public:
    Check(const Scenario& scenario, const std::string& origin)
        : m_scenario(scenario),
          m_parallel(scenario.parallel),
          m_model(scenario.model),
          m_kind(kindName(scenario.kind)),
          m_origin(origin) {}

    void all() const {
        degrees();
        pipeline();
        tensors();
        experts();
        nodes();
    }

  private:
    [[noreturn]] void fail(const std::string& what) const { throw ScenarioError(m_origin + ": " + what); }
    static std::string equals(const char* key, int64_t value) {
        return std::string(key) + " = " + std::to_string(value);
    }

    void needDegree(Kind kind, const char* key, int value) const {
        if (m_scenario.kind == kind && value < 2) fail("the kind '" + m_kind + "' needs " + key + " of at least 2");
    }
    void needOne(const char* key, int value, const char* what) const {
        if (value != 1) fail(equals(key, value) + ": the kind '" + m_kind + "' has no " + what);
    }

    void degrees() const {
        needDegree(Kind::tp, "parallel.tp", m_parallel.tp);
        needDegree(Kind::tpSp, "parallel.tp", m_parallel.tp);
        needDegree(Kind::pp, "parallel.pp", m_parallel.pp);
        needDegree(Kind::ep, "parallel.ep", m_parallel.ep);
        if (m_scenario.kind == Kind::threeD && m_parallel.tp * m_parallel.pp < 2)
            fail("the kind '3d' needs parallel.tp or parallel.pp of at least 2 (with one of each, use ddp or ep)");
        if (cutsModel(m_scenario.kind)) return;
        needOne("parallel.tp", m_parallel.tp, "tensor parallelism (use 1, or the kind tp)");
        needOne("parallel.ep", m_parallel.ep, "experts (use 1, or the kind ep)");
        needOne("parallel.pp", m_parallel.pp, "pipeline (use 1, or the kind pp)");
    }

    void pipeline() const {
        const bool interleaved = m_parallel.schedule == Schedule::interleaved;
        if (interleaved && m_parallel.pp < 2) fail("parallel.schedule = interleaved needs parallel.pp of at least 2");
        if (interleaved && m_parallel.virtualStages < 2)
            fail("parallel.schedule = interleaved needs parallel.virtual_stages of at least 2");
        if (!interleaved && m_parallel.virtualStages > 1)
            fail(equals("parallel.virtual_stages", m_parallel.virtualStages) +
                 " needs parallel.schedule = interleaved");
        // As Megatron-LM demands: micro-batches go round the stages in groups of pp.
        if (interleaved && m_parallel.microBatches % m_parallel.pp != 0)
            fail(equals("parallel.micro_batches", m_parallel.microBatches) + " is not a multiple of " +
                 equals("parallel.pp", m_parallel.pp) + ", which the interleaved schedule needs");
        const int stages = m_parallel.pp * m_parallel.virtualStages;
        if (m_model.layers % stages != 0)
            fail(equals("model.layers", m_model.layers) + " cannot be divided over " + std::to_string(stages) +
                 " stages");
        if (m_parallel.pp > 1 && m_parallel.accumulate != 1)
            fail(equals("parallel.accumulate", m_parallel.accumulate) +
                 ": a pipeline accumulates over parallel.micro_batches (use 1)");
    }

    void tensors() const {
        if (m_model.hidden % m_parallel.tp != 0)
            fail(equals("model.hidden", m_model.hidden) + " cannot be divided over " +
                 equals("parallel.tp", m_parallel.tp));
        if (m_scenario.kind == Kind::tpSp && m_model.seq % m_parallel.tp != 0)
            fail(equals("model.seq", m_model.seq) + " cannot be divided over " + equals("parallel.tp", m_parallel.tp));
    }

    void experts() const {
        if (m_model.experts && !cutsModel(m_scenario.kind))
            fail(equals("model.experts", m_model.experts) + ": the kind '" + m_kind + "' has none (use the kind ep)");
        if (m_parallel.dp % m_parallel.ep != 0)
            fail(equals("parallel.ep", m_parallel.ep) + " does not divide " + equals("parallel.dp", m_parallel.dp) +
                 ": experts are spread over replicas");
        if (m_model.experts % m_parallel.ep != 0)
            fail(equals("model.experts", m_model.experts) + " cannot be divided over " +
                 equals("parallel.ep", m_parallel.ep));
    }

    void nodes() const {
        const Cluster& cluster = m_scenario.cluster;
        const int64_t places = int64_t{cluster.nodes} * cluster.ranksPerNode;
        if (places != m_scenario.worldSize())
            fail("cluster has " + std::to_string(cluster.nodes) + " nodes x " + std::to_string(cluster.ranksPerNode) +
                 " ranks = " + std::to_string(places) +
                 ", but dp x tp x pp = " + std::to_string(m_scenario.worldSize()));
        if (m_scenario.kind == Kind::hsdp && (cluster.nodes < 2 || cluster.ranksPerNode < 2))
            fail(
                "the kind 'hsdp' needs cluster.nodes and cluster.ranks_per_node of at least 2: it shards inside a node "
                "and replicates across nodes");
    }

    const Scenario& m_scenario;
    const Parallel& m_parallel;
    const Model& m_model;
    std::string m_kind;
    const std::string& m_origin;
};

}  // namespace

void checkCombination(const Scenario& scenario, const std::string& origin) {
    Check(scenario, origin).all();
}

}  // namespace rankscope::reference
