"""The simulated queues agree with what is known of queues, and the table names what holds a load up."""

import random
import statistics

import pytest

from benchmarks.queueing import Cost, Pod, Trainer, Work, arrive, main, plan, simulate

ONE = Pod(cores=1, workers=1, children=1)


def on_the_loop(cpu_s: float) -> Work:
    """A rollout that is nothing but work on the event loop."""
    return Work((0.0,), cpu_s, (0.0,))


def test_one_server_with_random_arrivals_and_equal_work_waits_as_queueing_theory_says() -> None:
    """M/D/1: the mean time in the system is the service time times 1 + load / (2 (1 - load)) (Pollaczek-Khinchine)."""
    service_s, load = 0.004, 0.7
    found = arrive([on_the_loop(service_s)] * 40_000, load / service_s, ONE, seed=3)
    # A rollout comes to the loop twice, for half of its work each time, and is not interrupted in between.
    assert found.used["the event loop"] == pytest.approx(load, rel=0.03)
    expected_s = service_s * (1 + load / (2 * (1 - load)))
    assert statistics.fmean(found.latencies_s) == pytest.approx(expected_s, rel=0.25)


def test_exponential_work_waits_as_queueing_theory_says() -> None:
    """M/M/1: service time / (1 - load), for jobs whose place is the only scarce thing."""
    rng = random.Random(5)
    mean_s, load = 0.003, 0.6
    works = [Work((0.0,), 0.0, (rng.expovariate(1 / mean_s),)) for _ in range(40_000)]
    found = arrive(works, load / mean_s, Pod(cores=8, workers=1, children=1), seed=4)
    assert statistics.fmean(found.latencies_s) == pytest.approx(mean_s / (1 - load), rel=0.08)


def test_little_s_law_holds() -> None:
    works = Cost(0.01, (0.0, 0.008, 0.01, 0.01)).works(400, Trainer(turn_tokens=40), seed=1)
    found = simulate(works, 32, Pod(cores=2, children=2))
    assert found.rate * statistics.fmean(found.latencies_s) == pytest.approx(32, rel=0.1)


def test_the_same_seed_gives_the_same_figures() -> None:
    trainer, cost = Trainer(), Cost(0.01, (0.0, 0.008, 0.01, 0.01))
    one, other, third = (plan(20, trainer, cost, Pod(), 0.7, seed=seed).of_a_pod for seed in (1, 1, 2))
    assert one.latencies_s == other.latencies_s
    assert one.latencies_s != third.latencies_s


def test_short_jobs_do_not_wait_for_long_ones() -> None:
    long, short = Work((0.0,), 0.0, (30.0,)), Work((0.0,), 0.0, (0.01,))
    found = arrive([long, long, *[short] * 50], 10.0, Pod(cores=4, workers=1, children=2), seed=2)
    ordered = sorted(found.latencies_s)
    assert ordered[-2:] == [pytest.approx(30.0, rel=0.1)] * 2
    assert ordered[-3] < 2.5, "a second for the first of them to make room, and little more"


@pytest.mark.parametrize(
    ("pod", "work", "busiest"),
    [
        (Pod(cores=4, children=4), Work((0.0,), 0.05, (0.001,)), "the event loop"),
        (Pod(cores=4, children=1), Work((0.0,), 0.001, (0.05,)), "places for children"),
        (Pod(cores=1, workers=2, children=4), Work((0.0,), 0.01, (0.03,)), "cores"),
        (Pod(cores=4, children=4), Work((5.0,), 0.01, (0.01,)), "the model"),
    ],
)
def test_what_holds_a_load_up_is_named(pod: Pod, work: Work, busiest: str) -> None:
    assert simulate([work] * 200, 16, pod).saturated == busiest


def test_more_than_is_let_in_and_may_wait_is_refused_and_comes_again() -> None:
    pod = Pod(cores=1, children=1, max_rollouts=2, queue=1)
    found = simulate([Work((0.5,), 0.0, (0.0,))] * 12, 6, pod)
    assert found.refused >= 3
    assert len(found.latencies_s) == 12


def test_the_arithmetic_for_a_number_of_gpus() -> None:
    trainer = Trainer(tokens_per_gpu_s=2000, tokens_per_sequence_s=40, turn_tokens=400, turns=4)
    assert trainer.rate(100) == pytest.approx(125)
    assert trainer.sampling_s == pytest.approx(40)
    found = plan(100, trainer, Cost(0.01, (0.0, 0.01, 0.01, 0.01), heavy_share=0.0), Pod(cores=2, children=2), 0.7)
    assert found.cores == pytest.approx(125 * 0.04)
    assert found.pods == 7, "125 * 40 rollouts in flight, 0.7 * 1,024 of them on each pod: the cores alone would need 4"
    assert found.in_flight == pytest.approx(125 * 40, rel=0.1)
    assert found.of_a_pod.used["cores"] == pytest.approx(125 * 0.04 / 2 / 7, rel=0.1)
    assert found.of_a_pod.used["places for rollouts"] == pytest.approx(0.7, abs=0.05)


def test_places_for_rollouts_can_be_what_saturates_first() -> None:
    found = simulate([Work((1.0,), 0.001, (0.001,))] * 100, 20, Pod(max_rollouts=4))
    assert found.saturated == "places for rollouts"


def test_the_command_prints_a_row_for_each_number_of_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--gpus", "1,3", "--turn-tokens", "100"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["GPUs", "1", "3"]
