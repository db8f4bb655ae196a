# SPDX-License-Identifier: Apache-2.0
"""What recording costs a job: the same training run plain and observed, turn about, and the ratio of their step times with its 95 % upper bound."""
import math
import statistics

WARM_UP = 50  # steps: allocator, clocks and autotuning settle
# One-sided 95 % quantiles of Student's t by degrees of freedom (Abramowitz & Stegun, table 26.10).
T_95 = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833}


def typical_step(times, warm_up=WARM_UP):
    """Median of the step times of one run, in their unit, the first `warm_up` left out."""
    return statistics.median(times[warm_up:])


def overhead(plain, observed):
    """(mean, upper) overhead as shares of the step, from the typical steps of paired rounds: the mean of the logarithms of the rounds' ratios and its
    one-sided 95 % bound (t distribution; the round, not the step, is the unit). At least two rounds."""
    ratios = [math.log(b / a) for a, b in zip(plain, observed)]
    mean = statistics.mean(ratios)
    bound = mean + T_95[min(len(ratios) - 1, 9)] * statistics.stdev(ratios) / math.sqrt(len(ratios))
    return math.expm1(mean), math.expm1(bound)


def turns(variants, rounds):
    """The order of runs: every variant once a round, the order reversed in every other round so that a drift of the machine falls on all alike."""
    for number in range(rounds):
        yield from (variants if number % 2 == 0 else reversed(variants))
