"""Estimates from surveys, priors learned from them, and the plan."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pandas as pd
import pytest
from command import check_refused, run
from kinds import of_kind
from numpy.testing import assert_allclose
from scipy import integrate

import sottovoce as sv
from sottovoce.collecting import learning
from sottovoce.collecting.learning import posterior_mean, reports_for_prior
from sottovoce.collecting.model import model_of
from sottovoce.core.survey import SurveyEngine
from sottovoce.prior import Learned
from sottovoce.release.certify import certify_with
from sottovoce.samplers.survey import Survey

DATA = Path(__file__).parents[3] / "shared" / "data"


def ranked(n: int, power: float = 0.9) -> np.ndarray:
    weights = np.arange(1, n + 1) ** -power
    return np.asarray(weights / weights.sum())


def surveyed(n: int, epsilon: float, reports: int, seed: int = 0) -> tuple[sv.Mechanism, np.ndarray]:
    """The counts of a survey of a population that falls off like rank^-0.9."""
    mechanism = sv.certify(sv.survey(range(n), epsilon))
    law = np.maximum(model_of(mechanism).kernel.apply(ranked(n)), 0)
    counts = np.random.default_rng(seed).multinomial(reports, law / law.sum())
    return mechanism, counts.astype(np.float64)


@pytest.mark.parametrize(("n", "base"), [(3, 2), (9, 3), (10, 3), (25, 5), (40, 7), (30, 29)])
def test_the_transform_undoes_the_matrix_of_brute_force(n: int, base: int) -> None:
    mechanism = certify_with(Survey(sv.Prior.uniform(range(n)), 1.5, base), 62)
    engine, kernel = of_kind(mechanism.engine, SurveyEngine), model_of(mechanism).kernel
    total = 1 << 62
    rows = oracles.survey_matrix(n, base, Fraction(engine.own, total), Fraction(engine.other, total))
    matrix: Any = np.array([[float(chance) for chance in row] for row in rows])
    assert kernel is not None
    rng = np.random.default_rng(n)
    p = rng.dirichlet(np.ones(n))
    assert_allclose(kernel.apply(p), p @ matrix, rtol=0, atol=1e-14)
    assert_allclose(kernel.inverse(p @ matrix), p, rtol=0, atol=1e-12)
    support = (matrix > matrix.min() * 1.5).astype(float)  # whether a report supports a category
    y = rng.dirichlet(np.ones(matrix.shape[1]))
    low = float(support[0] @ matrix[1])
    values = (support - low) / (float(support[0] @ matrix[0]) - low)  # one report's contribution to each
    second, reach = kernel.inverse_columns(y)
    assert_allclose(kernel.inverse(y), values @ y, rtol=0, atol=1e-11)
    assert_allclose(second, values**2 @ y, rtol=0, atol=1e-10)
    assert_allclose(reach, values.max(axis=1) - values.min(axis=1), rtol=0, atol=1e-10)


def test_intervals_cover_and_the_errors_are_those_of_the_formula() -> None:
    n, reports, inside, squares = 120, 20_000, [], []
    for seed in range(60):
        mechanism, counts = surveyed(n, 1.0, reports, seed)
        found = sv.estimate(mechanism, counts)
        low, high = found.values - found.half_widths(), found.values + found.half_widths()
        inside.append(np.mean((low <= ranked(n)) & (ranked(n) <= high)))
        squares.append(np.mean((found.values - ranked(n)) ** 2))
    assert 0.935 < np.mean(inside) < 0.97
    assert np.mean(squares) * reports == pytest.approx(sv.survey(range(n), 1.0).variance, rel=0.05)


def test_reports_are_counted_from_every_form(tmp_path: Path) -> None:
    names = [f"shop {i}" for i in range(100)]
    mechanism = sv.certify(sv.survey(names, 2.0))
    answers = mechanism.release_many(np.random.default_rng(1).integers(0, 3, (400, 100)))
    counts = np.bincount(answers.astype(int), minlength=len(mechanism.answers))
    expected = sv.estimate(mechanism, counts.astype(float))
    for array in (counts, answers.astype(int)):  # which of the two it is cannot be told
        with pytest.raises(sv.errors.EstimateError, match="reports as a list, and counts as floats"):
            sv.estimate(mechanism, array)
    table = "item,mechanism\n" + "".join(f"{z},{mechanism.digest}\n" for z in answers)
    (tmp_path / "reports.csv").write_text(table, encoding="utf-8")
    for reports in (list(answers), answers, tmp_path / "reports.csv"):
        assert_allclose(sv.estimate(mechanism, reports).values, expected.values, rtol=0, atol=1e-12)
    for odd in ("shop 1", "-1", "01", str(len(mechanism.answers)), "1.0"):
        (tmp_path / "reports.csv").write_text(table + f"{odd},{mechanism.digest}\n", encoding="utf-8")
        with pytest.raises(sv.errors.EstimateError, match="1 of 401"):
            sv.estimate(mechanism, tmp_path / "reports.csv")
    with pytest.raises(sv.errors.EstimateError):
        sv.estimate(mechanism, ["shop 1", "shop 2"])
    assert expected.support.sum() > 0
    assert expected.to_dicts()[0]["reports"] == expected.support[0]
    assert "an even spread" in expected.verdict().summary()


def test_the_posterior_mean_is_that_of_an_integral() -> None:
    """One shape at a time, by scipy's quadrature."""
    values, errors = np.array([0.3, 0.02, -0.01, 0.0]), np.array([0.01, 0.01, 0.02, 0.005])
    centre = np.full(4, 0.25)
    for shape in (0.25, 1.0, 4.0):
        _, found = learning._integrals(values, errors, centre, shape)
        for v, s, c, x in zip(values, errors, centre, found, strict=True):

            def density(t: float, v: float = v, s: float = s, c: float = c, a: float = shape) -> float:
                return float(t ** (a - 1) * np.exp(-a * t / c - ((v - t) / s) ** 2 / 2))

            low, high = max(0.0, v - 10 * s), max(v, 0) + 10 * s
            top = integrate.quad(lambda t: t * density(t), low, high, limit=500)[0]
            bottom = integrate.quad(density, low, high, limit=500)[0]
            assert x == pytest.approx(top / bottom, rel=2e-3)


def test_a_learned_prior_is_positive_near_the_truth_and_says_where_it_comes_from() -> None:
    mechanism, counts = surveyed(100, 2.0, 100_000)
    prior = sv.estimate(mechanism, counts).as_prior()
    assert prior.smallest > 0
    assert np.abs(prior.probabilities - ranked(100)).sum() / 2 < 0.12
    assert prior.provenance == "learned"
    assert prior.learned == Learned(100_000, 2.0, mechanism.digest)
    assert "100,000 private reports at ε = 2" in repr(prior)
    served = sv.certify(sv.fitted(prior, 2.0))  # not refused: it is as private as the reports
    assert served.provenance == "learned"
    assert served.options["learned_mechanism"] == mechanism.digest
    assert "100,000 private reports" in repr(served)
    assert mechanism.digest[:16] in served._repr_html_()


def test_noise_is_not_taken_for_a_population() -> None:
    """Reports of uniform users: what is learned is the uniform prior, nearly."""
    mechanism = sv.certify(sv.survey(range(50), 1.0))
    law = np.full(len(mechanism.answers), 1 / len(mechanism.answers))
    for seed in range(5):
        counts = np.random.default_rng(seed).multinomial(5000, law).astype(np.float64)
        found = sv.estimate(mechanism, counts)
        learned, nearest = found.as_prior(force=True).probabilities, found.projected
        assert np.abs(learned - 1 / 50).sum() < 0.4 * np.abs(nearest - 1 / 50).sum()


def test_too_few_reports_are_refused_unless_forced() -> None:
    mechanism, counts = surveyed(100, 1.0, 500)
    needed = reports_for_prior(model_of(mechanism))
    assert needed > 1000
    found = sv.estimate(mechanism, counts)
    with pytest.raises(sv.errors.EstimateError, match=f"500 reports are too few .* {needed:,}"):
        found.as_prior()
    assert len(found.as_prior(force=True)) == 100


def test_the_mixture_bounds_what_liars_can_do() -> None:
    mechanism, counts = surveyed(20, 2.0, 5000)
    older = sv.Prior(range(20), ranked(20, 0.5))
    honest = sv.estimate(mechanism, counts).as_prior(older=older)
    lies = counts.copy()
    lies[0], lies[1:] = 5000, 0  # everybody says the same
    moved = sv.estimate(mechanism, lies).as_prior(older=older)
    assert (moved.probabilities >= 0.05 * older.probabilities * (1 - 1e-12)).all()
    assert (honest.probabilities >= 0.05 * older.probabilities * (1 - 1e-12)).all()
    half = sv.estimate(mechanism, lies).as_prior(older=older, mixture=0.5)
    assert (half.probabilities >= 0.5 * older.probabilities * (1 - 1e-12)).all()


def test_an_older_prior_must_fit_and_be_public() -> None:
    mechanism, counts = surveyed(20, 2.0, 5000)
    found = sv.estimate(mechanism, counts)
    with pytest.raises(sv.errors.PriorError, match="the categories of the mechanism"):
        found.as_prior(older=sv.Prior.uniform(range(21)))
    with pytest.raises(sv.errors.PriorError, match="made from the users"):
        found.as_prior(older=sv.Prior(range(20), ranked(20), provenance="users"))
    with pytest.raises(sv.errors.EstimateError, match="one certified mechanism"):
        sv.estimate(sv.randomized_response(sv.Prior.uniform(range(3)), 1.0), [0, 1, 2, 2]).as_prior()


def test_a_prior_made_from_users_is_not_laundered() -> None:
    """Neither as the prior of the mechanism that collects, nor by a statement."""
    raw = sv.Prior(["a", "b", "c"], [0.7, 0.2, 0.1], provenance="users")
    mechanism = sv.certify(sv.minimax_kernel(raw, 2.0), provenance="users")
    found = sv.estimate(mechanism, ["a"] * 300 + ["b"] * 200 + ["c"] * 100)
    flat = sv.Prior.uniform(["a", "b", "c"])
    settings: list[dict[str, Any]] = [{}, {"older": flat}, {"mixture": 1.0}, {"older": flat, "mixture": 1.0}]
    for more in settings:
        for force in (False, True):
            with pytest.raises(sv.errors.PriorError, match="was made from the users") as refused:
                found.as_prior(**more, force=force)
            assert "older" not in str(refused.value)  # no advice that would lose the mark
    with pytest.raises(sv.errors.PriorError, match="not learned"):
        sv.Prior(["a", "b"], [0.5, 0.5], provenance="users", learned=Learned(9, 1.0, "0" * 64))
    table = {"user": ["u", "v"], "item": ["a", "b"]}
    with pytest.raises(sv.errors.ParameterError, match="provenance"):
        sv.build_prior(pd.DataFrame(table), item="item", user="user", provenance="learned")
    for odd in ((0, 1.0, "0" * 64), (5, float("nan"), "0" * 64), (5, 1.0, "x"), (10**20, 1.0, "0" * 64)):
        with pytest.raises(sv.errors.PriorError):
            Learned(*odd)


def learned_at(epsilon: float, older: sv.Prior | None = None) -> sv.Prior:
    """A prior learned from the reports of a survey at this ε, perhaps with an earlier one to start from."""
    survey = sv.certify(sv.survey(["a", "b", "c"], epsilon))
    return sv.estimate(survey, {"a": 3000, "b": 2000, "c": 1000}).as_prior(older=older)


def test_a_learned_prior_states_the_largest_epsilon_of_all_reports_behind_it() -> None:
    """A later round at a small ε, started from an earlier one at a large ε, is no more private than that."""
    nearly_raw = learned_at(40.0)
    later = learned_at(1.0, older=nearly_raw)
    assert later.learned is not None
    assert (later.learned.epsilon, later.learned.reports) == (40.0, 6000)
    collecting = sv.certify(sv.minimax_kernel(nearly_raw, 1.0))  # the earlier prior is that of the mechanism
    reports = {"a": 3000, "b": 2000, "c": 1000}
    found = sv.estimate(collecting, reports)
    for older in (None, sv.Prior.uniform(["a", "b", "c"])):
        again = found.as_prior(older=older).learned
        assert again is not None
        assert again.epsilon == 40.0
    unstated = sv.Prior(["a", "b", "c"], [0.5, 0.3, 0.2], provenance="learned")
    with pytest.raises(sv.errors.PriorError, match="does not state"):
        learned_at(1.0, older=unstated)
    with pytest.raises(sv.errors.PriorError, match="does not state"):
        sv.estimate(sv.certify(sv.minimax_kernel(unstated, 1.0)), reports).as_prior()


def test_only_unbiased_reports_are_learned_from() -> None:
    prior = sv.Prior(["a", "b", "c"], [0.7, 0.2, 0.1])
    for sampler in (sv.kernel_clip(prior, 2.0), sv.stream(prior, 2.0)):
        found = sv.estimate(sv.certify(sampler), ["a"] * 300 + ["b"] * 100)
        with pytest.raises(sv.errors.EstimateError, match="drawn towards the old prior"):
            found.as_prior()
        assert found.as_prior(force=True).provenance == "learned"


def test_a_survey_that_can_tell_nothing_is_refused() -> None:
    for epsilon in (1e-17, 1e-300, 1e-9):
        with pytest.raises(sv.errors.ParameterError, match="must be larger"):
            sv.survey(range(20), epsilon)
    assert sv.survey(["only"], 1e-300).variance == 0
    even = made_with(20, 2)
    engine = replace(of_kind(even.engine, SurveyEngine), own=1 << 61, other=1 << 61)
    for mechanism in (replace(even, engine=engine), made_with(65522, 65521)):
        with pytest.raises(sv.errors.EstimateError, match=r"tell nothing|too many"):
            model_of(mechanism)
        assert mechanism.release(records=[3]) in mechanism.answers


def made_with(n: int, base: int) -> sv.Mechanism:
    return sv.certify(Survey(sv.Prior.uniform(range(n)), 1.0, base))


def test_many_reports_outweigh_any_older_prior() -> None:
    values = ranked(30)
    for older in (np.full(30, 1 / 30), ranked(30)[::-1]):
        found = posterior_mean(values, np.full(30, 1e-6), np.ascontiguousarray(older))
        assert_allclose(found, values, rtol=0, atol=2e-6)


def test_the_loop_by_commands(tmp_path: Path) -> None:
    """Survey, reports, prior, mechanism, releases; and the prior of raw users is still refused."""
    names = ["Drama", "Comedy", "War", "Noir", "Action"]
    (tmp_path / "names.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    rng = np.random.default_rng(3)
    rows = [(f"u{u}", names[i]) for u in range(600) for i in rng.choice(5, 3, p=ranked(5))]
    table = "user,item\n" + "".join(f"{user},{item}\n" for user, item in rows)
    (tmp_path / "users.csv").write_text(table, encoding="utf-8")
    where: dict[str, Any] = {"cwd": tmp_path}
    facts = json.loads(run("survey", "names.txt", "-e", "2", "-o", "survey.json", "--json", **where).stdout)
    assert facts["reports_for_prior"] < 600
    run("release", "survey.json", "users.csv", "--max-epsilon", "2", "-o", "reports.csv", **where)
    done = run("estimate", "survey.json", "reports.csv", "--as-prior", "prior.json", **where)
    assert "learned from 600 private reports at ε = 2" in done.stderr
    done = run("design", "prior.json", "-e", "2", "-o", "mechanism.json", **where)
    plain = json.loads((tmp_path / "mechanism.json").read_text(encoding="utf-8"))
    assert plain["provenance"] == "learned"
    assert plain["options"]["learned_mechanism"] == facts["digest"]
    run("release", "mechanism.json", "users.csv", "--max-epsilon", "2", "-o", "released.csv", **where)
    again = "estimate", "survey.json", "reports.csv", "--as-prior", "next.json", "--older", "prior.json"
    assert "600 private reports" in run(*again, **where).stderr
    raw = "prior", "users.csv", "--user", "user", "-o", "raw.json"
    run(*raw, **where)
    check_refused(run("design", "raw.json", "-e", "2", "-o", "no.json", **where), "--provenance users")
    refused = "estimate", "survey.json", "reports.csv", "--older", "prior.json"
    check_refused(run(*refused, **where), "--as-prior")


def test_the_names_of_a_survey_come_from_lines_or_from_a_public_table(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes("\ufeffWar\r\n\r\n Noir, dark \r\nDrama\r\n".encode())
    (tmp_path / "counts.csv").write_text('item,count\nWar,0\n"Noir, dark",5\nDrama,7\n', encoding="utf-8")
    digests = [
        json.loads(run("survey", tmp_path / name, "-e", "1", "--json").stdout)["digest"]
        for name in ("names.txt", "counts.csv")
    ]
    assert digests[0] == sv.certify(sv.survey(["War", "Noir, dark", "Drama"], 1.0)).digest
    prior = sv.build_prior(tmp_path / "counts.csv", item="item", smoothing=1)
    assert digests[1] == sv.certify(sv.survey(prior.categories, 1.0)).digest
    (tmp_path / "users.csv").write_text("user,item\nann,War\nann,Drama\nbob,War\n", encoding="utf-8")
    check_refused(run("survey", tmp_path / "users.csv", "-e", "1"), "must be public")
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    check_refused(run("plan", tmp_path / "empty.txt", "--users", "9", "-e", "1"), "names no category")
    (tmp_path / "twice.txt").write_text("War\nWar\n", encoding="utf-8")
    check_refused(run("survey", tmp_path / "twice.txt", "-e", "1"), "1 lines repeat others")


def test_the_plan_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("a\nb\nc\n", encoding="utf-8")
    command = "plan", tmp_path / "names.txt", "--users", "500", "-e", "2"
    done = run(*command)
    assert "answer a survey at epsilon 2" in done.stdout or "No survey pays" in done.stdout
    made = json.loads(run(*command, "--json").stdout)
    assert {"rows", "best", "needed", "uniform", "known"} <= set(made)


def test_a_plan_predicts_what_other_users_then_see() -> None:
    """The whole way with real releases, on invented users whom the plan did not look at."""
    made = sv.plan(range(18), 5000, 2.0)
    assert made.pays
    assert min(row.reports for row in made.rows if row.enough) == made.needed
    from sottovoce.planning.fitted import UNITS, invented

    found = []
    for crowd in range(20, 40):
        people = invented(ranked(18), crowd=crowd)
        asked = np.random.default_rng(crowd).permutation(1200)[: made.best.reports]
        assert len(asked) == made.best.reports, "the crowd is large enough"
        mechanism = sv.certify(sv.survey(range(18), 2.0))
        prior = sv.estimate(mechanism, list(mechanism.release_many(people[asked]))).as_prior()
        rest = np.setdiff1d(np.arange(1200), asked)
        sampler = sv.fitted(prior, 2.0)
        found.append(np.mean(sampler.divergence(people[rest] / 2.0**UNITS, sv.TV)))
    assert np.mean(found) == pytest.approx(made.best.others, rel=0.1)


def test_a_plan_says_when_no_survey_pays() -> None:
    few = sv.plan(range(18), 400, 2.0)
    assert not few.pays
    assert "No survey pays for 400 users" in few.summary()
    fewer = sv.plan(range(18), 100, 2.0)
    assert "too few" in fewer.summary()
    assert "best" not in str(fewer.listing().rows)
    with pytest.raises(sv.errors.ParameterError, match="users"):
        sv.plan(range(3), 10**18, 1.0)


@pytest.mark.full
@pytest.mark.skipif(not (DATA / "ml-1m").is_dir(), reason="the MovieLens data are not on this machine")
def test_movielens_without_public_data() -> None:
    """One fifth of the users answer; the others are within 5 % of 0.196, 0.064, 0.026, 0.0175 or nearer."""
    from experiments.learning import without_public_data

    for epsilon, wanted in {1.0: 0.196, 2.0: 0.064, 3.0: 0.026, 4.0: 0.0175}.items():
        row = without_public_data(DATA, epsilon, splits=20)
        assert row["fitted"] <= 1.05 * wanted + 3 * row["error"]
