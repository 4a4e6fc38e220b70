"""Nearest laws on the release path: the certificate of the box, every tape, batches, files, and streams."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kinds import of_kind
from mutants import some_geometry
from tape import tape
from walks import check_steps

import sottovoce as sv
from sottovoce.core import nearest as module
from sottovoce.core.arithmetic import certified_box
from sottovoce.core.engine import row_weights
from sottovoce.core.nearest import NearestEngine, NearestStreamEngine, targets_of, targets_of_rows
from sottovoce.errors import CertificateError, MechanismFileError, ParameterError
from sottovoce.geometry import Geometry
from sottovoce.records import weights_of_rows
from sottovoce.release.certify import certify_with
from sottovoce.release.file import ANY, parse
from sottovoce.release.mechanism import digest_of

PRIOR = sv.Prior(["a", "b", "c", "d", "e"], [0.05, 0.3, 0.2, 0.35, 0.1])
LINE = sv.Line([1, 2, 4, 8, 9])
TREE = sv.Tree.from_levels(["x", "x", "y", "y", "z"], ["X", "X", "X", "Y", "Y"])
GEOMETRIES = {"line": LINE, "tree": TREE}


@pytest.mark.parametrize("kind", GEOMETRIES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_certificate_is_that_of_the_box_and_the_law_that_of_the_sampler(
    kind: str, epsilon: float
) -> None:
    sampler = sv.nearest(PRIOR, epsilon, GEOMETRIES[kind])
    mechanism = sv.certify(sampler)
    engine = of_kind(mechanism.engine, NearestEngine)
    clip = sv.certify(sv.ClipSampler("own", PRIOR, epsilon, sampler.floor))
    assert engine.box == certified_box(engine.box.low, mechanism.ratio, 1 << 62) == clip.engine.box  # type: ignore[attr-defined]
    assert mechanism.keeps_prior
    users = [np.eye(5)[i] for i in range(5)] + [
        np.random.default_rng(i).dirichlet(np.full(5, 0.3)) for i in range(20)
    ]
    laws = [mechanism.law(p=p) for p in users]
    for p, law in zip(users, laws, strict=True):
        assert sum(law) == 1
        # Shares are cut to 41 digits.
        assert np.abs(np.array([float(x) for x in law]) - sampler.distribution(p)).max() <= 1e-11
    assert all(max(column) <= mechanism.ratio * min(column) for column in zip(*laws, strict=True))
    units = [(i, w) for i, w in enumerate(engine.prior)]
    assert mechanism.law(records=[]) == [Fraction(w, 1 << 62) for _, w in units]


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_every_tape_through_the_shipping_path(kind: str) -> None:
    mechanism = certify_with(sv.nearest(PRIOR, 2.0, GEOMETRIES[kind]), 12)
    for records in ([], ["a"], ["a", "d", "d"], ["e", "b", "c", "a"]):
        counts: Counter[Any] = Counter()
        for word in range(1 << 12):
            with tape([word], 12) as reads:
                counts[mechanism.release(records=records)] += 1
            assert reads == [8]
        assert [Fraction(counts[name], 1 << 12) for name in PRIOR.categories] == mechanism.law(
            records=records
        )


@pytest.mark.parametrize("bits", [12, 62])
def test_a_batch_releases_what_one_release_does(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for geometry in GEOMETRIES.values():
        engine = certify_with(sv.nearest(PRIOR, 2.0, geometry), bits).engine
        counts = rng.integers(0, 4, (200, 5)) * rng.integers(0, 2, (200, 5))
        counts[7] = 0
        counts[8] = [1 << 51, 3, 0, 1 << 50, 1]
        rows, words = weights_of_rows(counts, 5), rng.integers(0, 1 << bits, 200)
        words[:3] = 0, (1 << bits) - 1, 1
        expected = [engine.position(row_weights(rows, i), [int(words[i])]) for i in range(200)]
        assert engine.positions(rows, [words]).tolist() == expected


def test_targets_are_shares_that_add_up_in_both_paths() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 1 << 50, (50, 7)) >> rng.integers(0, 50, (50, 7))
    counts[0] = 0
    rows = weights_of_rows(counts, 7)
    public = np.full(7, 5)
    many = targets_of_rows(rows, 62, public)
    assert many[0].tolist() == [5] * 7
    for i in range(1, 50):
        weights = row_weights(rows, i)
        alone = targets_of(weights, 7, 1 << 62)
        assert many[i].tolist() == alone
        assert sum(alone) == 1 << 62
        total = sum(counts[i].tolist())
        assert all(
            abs(Fraction(t, 1 << 62) - Fraction(k, total)) < Fraction(16, 1 << 40)
            for t, k in zip(alone, counts[i].tolist(), strict=True)
        )


def test_a_law_outside_the_box_is_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = sv.certify(sv.nearest(PRIOR, 1.0, LINE))
    stream = sv.certify(sv.stream(PRIOR, 4.0, geometry=LINE))
    rows = np.ones((3, 5), dtype=np.int64)
    states = [stream.start()] * 3

    def outside(targets: Any, low: Any, high: Any, geometry: Geometry) -> Any:
        return targets

    monkeypatch.setattr(module, "nearest_law", outside)
    monkeypatch.setattr(module, "nearest_laws", outside)
    attempts: list[Callable[[], object]] = [
        lambda: mechanism.release(records=["a"]),
        lambda: mechanism.release_many(rows),
        lambda: stream.release(records=["a"], state=stream.start()),
        lambda: stream.release_many(rows * [9, 0, 0, 0, 0], states),
    ]
    for attempt in attempts:
        with pytest.raises(CertificateError, match="nothing is released"):
            attempt()


@pytest.mark.parametrize("kind", ["nearest", "nearest-stream"])
def test_files_come_back_and_changed_ones_are_refused(kind: str, tmp_path: Path) -> None:
    made = sv.certify(
        sv.nearest(PRIOR, 1.0, TREE) if kind == "nearest" else sv.stream(PRIOR, 4.0, geometry=TREE)
    )
    made.save(tmp_path / "m.json")
    again = sv.load(tmp_path / "m.json", policy=sv.Policy(max_epsilon=4))
    assert again == made
    assert again.engine.kind == kind
    plain = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))

    def changed(**fields: Any) -> str:
        document = {**plain, **fields}
        del document["digest"]
        return json.dumps({**document, "digest": digest_of(document)})

    assert parse(changed(lengths=[2 * one for one in plain["lengths"]]), "x", ANY).digest != made.digest
    parents, lengths = plain["parents"], plain["lengths"]
    for fields in (
        {"parents": parents[:-1]},
        {"parents": [*parents[:-1], 0]},
        {"parents": [True, *parents[1:]]},
        {"parents": {"0": 1}},
        {"parents": [str(one) for one in parents]},
        {"lengths": [-1, *lengths[1:]]},
        {"lengths": [1 << 31, *lengths[1:]]},
        {"lengths": None},
        {"parents": [5, 5, 5, 5, *range(6, 20)], "lengths": [1] * 18},
        {"parents": [4, 4, 4, 4], "lengths": [1] * 4},
        {"kind": "box" if kind == "nearest" else "stream"},
    ):
        with pytest.raises((MechanismFileError, CertificateError)):
            parse(changed(**fields), "x", ANY)


def test_a_geometry_of_other_categories_is_no_mechanism() -> None:
    mechanism = sv.certify(sv.nearest(PRIOR, 1.0, LINE))
    engine = of_kind(mechanism.engine, NearestEngine)
    with pytest.raises(CertificateError, match="geometry"):
        replace(mechanism, engine=replace(engine, geometry=sv.Line([1, 2])))
    stream = sv.certify(sv.stream(PRIOR, 4.0, geometry=LINE))
    with pytest.raises(CertificateError, match="geometry"):
        replace(stream, engine=replace(of_kind(stream.engine, NearestStreamEngine), geometry=sv.Line([1, 2])))
    with pytest.raises(ParameterError, match="geometry"):
        sv.stream(PRIOR, 4.0, geometry=sv.Line([1, 2]))


# --- streams -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("persistence", [0.0, 0.9])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_all_transcripts_of_three_releases_are_private(epsilon: float, persistence: float) -> None:
    prior = sv.Prior(range(3), [0.2, 0.3, 0.5])
    mechanism = sv.certify(
        sv.stream(prior, epsilon, horizon=3, persistence=persistence, geometry=sv.Line([0, 1, 5]))
    )
    engine = of_kind(mechanism.engine, NearestStreamEngine)
    users = [[(0, 1)], [(1, 1)], [(2, 1)], [(0, 1), (2, 3)], []]
    laws = [engine.transcripts(weights, 3) for weights in users]
    assert all(sum(law) == 1 for law in laws)
    ratios = [max(column) / min(column) for column in zip(*laws, strict=True)]
    assert max(ratios) <= mechanism.ratio
    assert max(ratios) > float(mechanism.ratio) ** 0.5  # the budget is used
    if not persistence:
        expected = [
            Fraction(engine.prior[i] * engine.prior[j] * engine.prior[k], sum(engine.prior) ** 3)
            for i, j, k in itertools.product(range(3), repeat=3)
        ]
        assert laws[-1] == expected


def test_a_stream_stays_near_where_it_was() -> None:
    """With persistence, a place that does not change is released near itself, night after night."""
    line = sv.Line(range(30))
    mechanism = sv.certify(
        sv.stream(sv.Prior.uniform(range(30)), 10.0, horizon=30, persistence=0.98, geometry=line)
    )
    states = [mechanism.start()] * 200
    p = np.zeros((200, 30), dtype=np.int64)
    p[:, 12] = 1
    for _ in range(30):
        names, states = mechanism.release_many(p, states)
    assert np.abs(names.astype(int) - 12).mean() < 2


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not on this machine")
@pytest.mark.parametrize("steps", [60, pytest.param(2_500, marks=pytest.mark.full)])
def test_javascript_takes_the_same_steps(steps: int, tmp_path: Path) -> None:
    """Eight streams with any geometry: every release and every state, bit for bit."""
    rng, chance, streams = np.random.default_rng(steps), random.Random(steps), []
    for k, n in enumerate((1, 2, 5, 40, 7, 3, 12, 100)):
        prior = sv.Prior(range(n), rng.dirichlet(np.full(n, 1.0)) * 0.999 + 0.001 / n)
        persistence = 0.9 if k in (4, 6) else 0.0
        design = sv.stream(
            prior, (0.1, 1.0, 4.0, 8.0, 16.0)[k % 5], horizon=(None, 4, 52)[k % 3], persistence=persistence,
            geometry=some_geometry(chance, n),
        )  # fmt: skip
        streams.append(sv.certify(design))
    check_steps(streams, steps, rng, tmp_path)


def test_a_user_equal_to_the_prior_keeps_its_integers() -> None:
    for prior in (PRIOR, sv.Prior.uniform(range(3)), sv.Prior(range(4), [0.1, 0.2, 0.3, 0.4])):
        engine = of_kind(sv.certify(sv.nearest(prior, 1.0, sv.Line(range(len(prior))))).engine, NearestEngine)
        assert engine.units(list(enumerate(engine.prior))) == list(engine.prior)
        row = weights_of_rows(np.array([engine.prior, engine.prior]) >> 12, len(prior))
        public = np.array(engine.prior, dtype=np.int64)
        expected = targets_of(row_weights(row, 0), len(prior), 1 << 62)
        assert targets_of_rows(row, 62, public).tolist() == [expected] * 2  # 50 digits, in both paths


def test_a_cap_at_all_units_is_released_from() -> None:
    """A category whose cap is N, where N is no multiple of its weight."""
    prior = sv.Prior(["a", "b"], [1 - 2**-40, 2**-40])
    engine = sv.certify(sv.stream(prior, 8.0, geometry=sv.Line([0, 1]), horizon=1, start=4.0)).engine
    stream = of_kind(engine, NearestStreamEngine)
    law = stream.step_law([(0, 1)], *stream.ratios(*stream.first(), 0))
    assert sum(stream.units(law)) == 1 << 62
    assert stream.drawn(law, (1 << 62) - (1 << 21))[0] == 0


def test_a_narrow_box_takes_few_categories_and_a_stream_16_384() -> None:
    line = sv.Line(range(5))
    with pytest.raises(CertificateError, match="larger epsilon"):
        sv.certify(sv.nearest(PRIOR, 1e-6, line))
    many = sv.Prior.uniform(range(16_385))
    with pytest.raises(CertificateError, match="16384"):
        sv.certify(sv.stream(many, 4.0, geometry=sv.Line(range(16_385))))
