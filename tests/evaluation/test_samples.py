"""What a sample is known by, and where its seed comes from."""

from verilog_taskapp.evaluation.samples import sample_seed


def test_seeds_are_the_same_for_ever() -> None:
    assert sample_seed(0, "qwen", "Prob001_zero", 0) == 194700265


def test_every_sample_has_a_seed_of_its_own() -> None:
    seeds = {
        sample_seed(seed, model, problem, number)
        for seed in (0, 1)
        for model in ("a", "b")
        for problem in ("p", "q", 'p", "q')
        for number in range(50)
    }
    assert len(seeds) == 2 * 2 * 3 * 50
    assert all(0 <= seed < 2**31 for seed in seeds)
