"""The explorer's views against the library: numbers, uploads, files of the command line."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from workbooks import write_workbook

import sottovoce as sv
from sottovoce.demo import demo_data

pytest.importorskip("marimo")
from sottovoce.explore import cards, drawing, given, names, people, recommend, tiles, views

DATA = demo_data()
PRIOR = DATA.priors["25 to 44"]
PEOPLE = people.of_counts(DATA.members["25 to 44"], given=True)
COUNTS = PEOPLE.counts(3)
EVIL = '<img src="https://example.org/x" onerror="alert(1)">'


def words_of(chart: str) -> dict[str, str]:
    """Per category of a chart what is said to somebody who does not see it."""
    found = re.findall(
        r'class="sv-name" title="[^"]*">([^<]*)</span>.*?<span class="sv-hidden">([^<]*)</span>', chart
    )
    return dict(found)


def test_the_chart_of_what_may_be_released_has_the_librarys_numbers() -> None:
    samplers = [recommend.sampler(PRIOR, name, 3.0) for name in ("kernel_clip", "minimax_kernel")]
    words = words_of(views.box_chart(samplers, COUNTS))
    p = COUNTS / COUNTS.sum()
    clip = sv.kernel_clip(PRIOR, 3.0)
    laws = {one.name: one.distribution(p) for one in (clip, sv.minimax_kernel(PRIOR, 3.0))}
    assert set(words) == set(PRIOR.categories)
    for i, name in enumerate(map(str, PRIOR.categories)):
        low, high = 100 * clip.floor[i], 100 * min(np.exp(3.0) * clip.floor[i], 1)
        public = f"public {100 * PRIOR.probabilities[i]:.1f} %"
        assert f"released with {low:.1f} % to {high:.1f} %; {public}" in words[name]
        assert ("this person" in words[name]) == (p[i] > 0)
        for sampler, law in laws.items():
            assert f"{sampler} {100 * law[i]:.1f} %" in words[name]


def test_the_table_of_distances_has_the_librarys_numbers() -> None:
    samplers = [recommend.sampler(PRIOR, name, 3.0) for name in ("fitted", "global_minimax")]
    p = COUNTS / COUNTS.sum()
    lines = re.findall(r"<small>(\w+)</small></th>(.*?)</tr>", views.distances(samplers, p, PEOPLE))
    rows = sv.compare(PEOPLE.some, samplers, [sv.TV]).rows
    for (name, cells), one, row in zip(lines, samplers, rows, strict=True):
        keeps = "yes" if name == "fitted" else "no"
        numbers = [float(one.divergence(p, sv.TV)), row.mean, row.maximum, one.worst_case(sv.TV)]
        assert re.findall("<td>(.*?)</td>", cells) == [*(f"{value:.4f}" for value in numbers), keeps]


def test_large_domains_show_the_persons_own_categories_and_fold_the_rest() -> None:
    wide = sv.Prior.uniform(range(6000))
    counts = np.zeros(6000)
    counts[[5990, 17, 300]] = 1, 3, 2
    first, rest = views.in_front(wide, counts)
    assert first == [17, 300, 5990]
    assert len(first) + len(rest) == views.MOST_SHOWN
    chart = views.box_chart([recommend.sampler(wide, "kernel_clip", 1.0)], counts)
    before, folded = chart.split("<details")
    assert list(words_of(before)) == ["17", "300", "5990"]
    assert len(words_of(folded)) == views.MOST_SHOWN - 3
    assert "5,940 others are not drawn" in folded
    small, none = views.in_front(PRIOR, COUNTS)
    assert (len(small), none) == (18, [])


def test_every_sampler_has_a_plain_name_and_a_sentence() -> None:
    assert set(names.NAMES) == set(recommend.OFFERED)
    assert len({one.name for one in names.NAMES.values()}) == len(names.NAMES)
    boxes = {name: f"[{name}]" for name in recommend.OFFERED}
    panel = cards.panel(data=[], about="", problem="", epsilon="", samplers=boxes, person="")
    for name in recommend.OFFERED:
        assert panel.count(f"[{name}]") == 1
        assert panel.count(drawing.text(names.plain(name).sentence)) == 2  # on hover, and on tap
    assert names.plain("a_new_one").name == "a new one"


def test_names_are_text_everywhere() -> None:
    """A category may be called like markup; no part of the page may become it."""
    prior = sv.Prior([EVIL, "b"], [0.5, 0.5])
    counts = np.array([3.0, 1.0])
    sampler, two = recommend.sampler(prior, "minimax_kernel", 1.0), people.of_counts([counts], given=True)
    mechanism = sv.certify(sampler)
    buttons = {f"{sign}{i}": "" for sign in "−+" for i in range(2)}
    shown = [
        views.box_chart([sampler], counts),
        views.leak_words(sampler, counts),
        *views.population_chart(mechanism, two.crowd(100)),
        tiles.kernel_map(sampler),
        tiles.answers([(EVIL, 1.0)]),
        cards.person(counts, prior, [0, 1], buttons, "", EVIL),
        cards.panel(
            data=[], about=cards.about(prior, EVIL, two, EVIL), problem=EVIL, epsilon="",
            samplers=dict.fromkeys(recommend.OFFERED, ""), person="",
        ),
        cards.refusal([(EVIL, 0)]),
    ]  # fmt: skip
    for one in shown:
        assert one is not None
        assert "<img" not in one
    assert sum("&lt;img" in str(one) for one in shown) == len(shown) - 1  # the words of an estimate name none


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"item,count\na,0\nb,1\n", "category 'a' has 0"),
        (b"thing,count\na,1\nb,1\n", "there is no column 'item'; the table has thing, count"),
        (b"", "my.csv is empty"),
    ],
)
def test_bad_uploads_are_named_as_the_visitor_knows_them(content: bytes, message: str) -> None:
    with pytest.raises(sv.errors.SottovoceError, match=re.escape(message)) as caught:
        views.uploaded_prior(content, "my.csv")
    assert "/" not in str(caught.value)
    assert views.uploaded_prior(b"item,count\na,3\nb,1\n", "my.csv").probabilities.tolist() == [0.75, 0.25]


def packed(kind: str) -> bytes:
    """The same small table in a wrapping that a reader might open."""
    plain, box = b"item,count\na,3\nb,1\n", io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(box, "w") as archive:
            archive.writestr("a.csv", plain)
    elif kind in ("parquet", "ipc"):
        getattr(pl.read_csv(plain), f"write_{kind}")(box)
    made = {"gzip": gzip.compress(plain), "zlib": zlib.compress(plain), "zstd": b"\x28\xb5\x2f\xfd" + plain}
    return made.get(kind, box.getvalue())


def test_a_workbook_can_be_uploaded(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    content = write_workbook(tmp_path / "b.xlsx", [["item", "count"], ["a", 3], ["b", 1]]).read_bytes()
    assert views.uploaded_prior(content, "my.xlsx").probabilities.tolist() == [0.75, 0.25]
    with pytest.raises(
        sv.errors.TableError, match=r"^my\.xlsx cannot be read as xlsx: it is cut off or damaged$"
    ):
        views.uploaded_prior(content[:200], "my.xlsx")


@pytest.mark.parametrize("kind", ["gzip", "zlib", "zstd", "zip", "parquet", "ipc"])
def test_a_packed_upload_is_refused_before_it_is_opened(kind: str) -> None:
    with pytest.raises(
        sv.errors.TableError, match=r"my\.csv is compressed or binary: upload a plain CSV file"
    ):
        views.uploaded_prior(packed(kind), "my.csv")


def test_a_prior_that_cannot_be_certified_is_refused() -> None:
    with pytest.raises(sv.errors.CertificateError, match="too rare to certify"):
        views.uploaded_prior(b"item,count\na,100000000000000000000\nb,1\n", "x.csv")


def test_a_large_upload_is_refused() -> None:
    with pytest.raises(sv.errors.TableError, match=r"my\.csv has more than 10 MB"):
        views.uploaded_prior(b"item,count\n" + b"a,1\n" * 2_500_000, "my.csv")


def test_files_of_the_command_line_reach_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "_given", given.Given())  # as in a process that has shown nothing yet
    (tmp_path / "prior.csv").write_text("item,count\na,3\nb,1\n")
    (tmp_path / "users.csv").write_text("user,item\nu,a\nu,b\nv,c\n")
    assert given.taken() == given.read_given(None, None) == given.Given()
    read = given.read_given(tmp_path / "prior.csv", tmp_path / "users.csv")
    assert read.priors["all"].probabilities.tolist() == [0.75, 0.25]
    assert read.users["all"].p.toarray().tolist() == [[0.5, 0.5]]
    assert "1 rows with unknown items dropped" in read.left_out


def test_the_command_refuses_what_it_cannot_show(tmp_path: Path) -> None:
    prior, users = tmp_path / "prior.csv", tmp_path / "users.csv"
    prior.write_text("item,count\na,3\nb,1\n")
    users.write_text("who,what\nsecret,a\n")
    for files in ([tmp_path / "none.csv"], [prior, tmp_path / "none.csv"], [prior, users]):
        command = [sys.executable, "-m", "sottovoce", "explore", *map(str, files), "--no-browser"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {files[-1]}")
        assert done.stderr.count("\n") == 1
        assert "secret" not in done.stderr


def test_the_page_says_what_shuffling_adds_and_whom_to_trust() -> None:
    """The number is an upper bound: not below `amplified`, and at most a few per cent above it."""
    mechanism = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5]), 2.0))
    words = views.shuffled_words(mechanism)
    central = float(words.split("(")[1].split(",")[0])
    exact = sv.amplified(mechanism, 10_000, 1e-6)
    assert exact * 0.95 <= central <= exact * 1.1  # two digits are shown
    assert "somebody whom they trust" in words
    assert "ε = 2 of the single report holds" in words
    large = sv.certify(sv.kernel_clip(sv.Prior(["a", "b", "c"], [0.2, 0.3, 0.5]), 20.0))
    assert "would add nothing" in views.shuffled_words(large)
