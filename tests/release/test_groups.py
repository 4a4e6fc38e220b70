"""Promise 14: of a user's other columns a release publishes only what the releasing side named itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import check_refused, check_refused_last, run, write

import sottovoce as sv
from sottovoce.release.file import ANY, load_mechanisms, save_mechanisms
from sottovoce.release.mechanism import digest_of
from sottovoce.tables import priors as priors_table

PRIOR = sv.Prior.from_counts({"a": 5, "b": 3, "c": 2})
USERS = (
    "user,item,weight,age,diagnosis\n"
    "ann,a,3,old,secret-flu\nann,b,1,old,secret-flu\nbob,c,2,young,secret-gout\ncy,a,1,young,secret-flu\n"
)


def mechanism(prior: sv.Prior = PRIOR) -> sv.Mechanism:
    return sv.certify(sv.kernel_clip(prior, 1.0))


def hostile(folder: Path, by: str, groups: list[str]) -> tuple[Path, str]:
    """A file of groups as a collector can write it: signed, certified, whatever its column is called."""
    plain: dict[str, Any] = {
        "format": "sottovoce-mechanisms",
        "version": 1,
        "by": by,
        "groups": {name: {**mechanism().document(), "digest": mechanism().digest} for name in groups},
    }
    digest = digest_of(plain)
    path = folder / f"by-{by.strip().lower()}.json"
    path.write_text(json.dumps({**plain, "digest": digest}))
    return path, digest


@pytest.fixture
def users(tmp_path: Path) -> Path:
    return write(tmp_path, "users.csv", USERS)


def test_promise_14_a_private_column_is_not_published_because_the_file_asks_for_it(
    tmp_path: Path, users: Path
) -> None:
    path, digest = hostile(tmp_path, "diagnosis", ["secret-flu", "secret-gout"])
    out = tmp_path / "r.csv"
    done = run("release", path, users, "-o", out, "--max-epsilon", 1)
    check_refused(done, "it asks for the column 'diagnosis'")
    assert "published in clear" in done.stderr
    assert "secret" not in done.stderr
    assert not out.exists()
    check_refused(run("release", path, users, "-o", out, "--digest", "0" * 64), "is not the expected file")
    # Another column than the file's is the releasing side's own choice; its values must have mechanisms.
    check_refused(
        run("release", "--max-epsilon", "100", path, users, "-o", out, "--by", "age"),
        "2 of 2 groups have no prior",
    )
    for blank in ("", " "):  # an unset variable is no consent
        check_refused(
            run("release", "--max-epsilon", "100", path, users, "-o", out, "--by", blank),
            "by must be the name of a column",
        )
    # Only by name, or by pinning every byte of the file, can the column be published.
    for consent in (["--by", "diagnosis"], ["--digest", digest]):
        agreed = run("release", "--max-epsilon", "100", path, users, "-o", out, *consent, "--force")
        assert agreed.returncode == 0, agreed.stderr
        assert "column 'diagnosis', is published in clear" in agreed.stderr
        assert set(pl.read_csv(out)["diagnosis"]) == {"secret-flu", "secret-gout"}


@pytest.mark.parametrize("by", ["item", "user", "weight", "count", "Item", " USER ", "ｉｔｅｍ"])
def test_promise_14_items_users_and_amounts_are_never_groups_whoever_signs(
    tmp_path: Path, users: Path, by: str
) -> None:
    path, digest = hostile(tmp_path, by, ["a", "b", "c"])
    consents: list[list[str]] = [[], ["--by", "age"], ["--digest", digest], ["--by", by, "--digest", digest]]
    for consent in consents:
        done = run("release", "--max-epsilon", "100", path, users, "-o", tmp_path / "r.csv", *consent)
        check_refused(done, "cannot be a group")
        assert not (tmp_path / "r.csv").exists()
    with pytest.raises(sv.errors.MechanismFileError, match="cannot be a group"):
        sv.load_groups(path, policy=ANY)
    with pytest.raises(sv.errors.MechanismFileError, match="cannot be a group"):
        sv.load_groups(path, policy=sv.Policy(digest=digest))
    with pytest.raises(sv.errors.ParameterError, match="cannot be a group"):
        save_mechanisms({"a": mechanism()}, by, tmp_path / "own.json")
    assert not (tmp_path / "own.json").exists()


@pytest.mark.parametrize("by", ["what", "who", "much", "item"])
def test_promise_14_nor_under_another_name(tmp_path: Path, by: str) -> None:
    """The columns that hold users, items and weights are refused by what they are, in every verb."""
    path, digest = hostile(tmp_path, "what", ["a", "b", "c"])
    table = write(tmp_path, "t.csv", "who,what,much,item\nann,a,1,a\nann,b,2,b\nbob,a,1,a\n")
    named = ["--user", "who", "--item", "what", "--weight", "much"]
    done = run("release", path, table, "-o", tmp_path / "r.csv", *named, "--by", by, "--digest", digest)
    check_refused(done, "cannot be a group")
    frame = pl.read_csv(table)
    columns: dict[str, Any] = {"user": "who", "item": "what", "weight": "much", "by": by}
    with pytest.raises(sv.errors.ParameterError, match="cannot be a group"):
        sv.read_users(frame, **columns, prior={"a": PRIOR})
    with pytest.raises(sv.errors.ParameterError, match="cannot be a group"):
        sv.build_prior(frame, **columns)


def test_promise_14_prior_files_make_no_such_groups_either(tmp_path: Path) -> None:
    rows = [
        {"age": age, "item": item, "n": n}
        for age, item, n in (("a", "x", 1), ("a", "y", 2), ("b", "x", 2), ("b", "y", 2))
    ]
    (tmp_path / "o.json").write_text(json.dumps(rows))
    check_refused(run("design", tmp_path / "o.json", "-e", 1, "--by", "item"), "cannot be a group")
    data = priors_table.read_priors(tmp_path / "o.json", by="age", count="n")
    priors_table.write_priors(data, tmp_path / "p.json")
    plain = json.loads((tmp_path / "p.json").read_text())
    (tmp_path / "p.json").write_text(json.dumps({**plain, "by": "user"}))
    check_refused(run("design", tmp_path / "p.json", "-e", 1), "cannot be a group")


def test_promise_14_a_user_has_one_group(tmp_path: Path) -> None:
    """Which groups a user has rows in is a set, and the set tells."""
    prior = write(tmp_path, "prior.csv", "item,count,shop\na,5,x\nb,3,x\nc,2,x\na,1,y\nb,2,y\nc,3,y\n")
    assert run("design", prior, "-e", 1, "--by", "shop", "-o", tmp_path / "m.json").returncode == 0
    table = write(tmp_path, "t.csv", "user,item,shop\nann,a,x\nann,b,y\nbob,c,x\nbob,c,x\n")
    book = ["--ledger", tmp_path / "b.db"]
    assert run("ledger", "create", tmp_path / "b.db", "--budget", 2).returncode == 0
    before = (tmp_path / "b.db").read_bytes()
    release = [
        "release",
        "--max-epsilon",
        "100",
        tmp_path / "m.json",
        table,
        "-o",
        tmp_path / "r.csv",
        "--by",
        "shop",
        *book,
    ]
    done = run(*release)
    check_refused(done, "1 of 2 users have more than one value in column 'shop'")
    assert "ann" not in done.stderr
    assert not (tmp_path / "r.csv").exists()
    assert (tmp_path / "b.db").read_bytes() == before
    allowed = run(*release, "--several-groups", "allow")
    assert allowed.returncode == 0, allowed.stderr
    assert pl.read_csv(tmp_path / "r.csv").height == 3
    with pytest.raises(sv.errors.UserDataError, match="1 of 2 users have more than one value"):
        sv.read_users(
            table, user="user", item="item", by="shop", prior=sv.load_groups(tmp_path / "m.json", policy=ANY)
        )


def test_a_policy_pins_a_file_of_groups_as_a_whole(tmp_path: Path) -> None:
    other = sv.certify(sv.kernel_clip(sv.Prior.from_counts({"a": 1, "b": 1, "c": 9}), 1.0))
    digest = save_mechanisms({"old": mechanism(), "young": other}, "age", tmp_path / "m.json")
    loaded = load_mechanisms(tmp_path / "m.json", policy=sv.Policy(digest=digest))
    assert (loaded.digest, loaded.by, set(loaded.mechanisms)) == (digest, "age", {"old", "young"})
    for wrong in (mechanism().digest, other.digest, "0" * 64):  # a part of the file is not the file
        with pytest.raises(sv.errors.MechanismFileError, match="not the expected file"):
            sv.load_groups(tmp_path / "m.json", policy=sv.Policy(digest=wrong))
    swapped = save_mechanisms({"old": other, "young": mechanism()}, "age", tmp_path / "swapped.json")
    renamed = save_mechanisms({"old": mechanism(), "young": other}, "sex", tmp_path / "renamed.json")
    assert len({digest, swapped, renamed}) == 3
    for name in ("swapped.json", "renamed.json"):
        with pytest.raises(sv.errors.MechanismFileError, match="not the expected file"):
            sv.load_groups(tmp_path / name, policy=sv.Policy(digest=digest))
    for bad in ("abc", digest.upper(), digest[:16], 7):
        with pytest.raises(sv.errors.ParameterError, match="64 hexadecimal digits"):
            sv.Policy(digest=bad)  # type: ignore[arg-type]


def test_design_prints_the_digest_that_release_takes(tmp_path: Path, users: Path) -> None:
    prior = write(
        tmp_path, "prior.csv", "item,count,age\na,5,old\nb,3,old\nc,1,old\na,1,young\nb,9,young\nc,3,young\n"
    )
    made = run("design", prior, "-e", 1, "--by", "age", "-o", tmp_path / "m.json")
    digest = made.stderr.split("--digest ")[1].split()[0]
    assert "publishes each user's 'age' in clear" in made.stderr
    done = run("release", tmp_path / "m.json", users, "-o", tmp_path / "r.csv", "--digest", digest)
    assert done.returncode == 0, done.stderr
    single = run("design", prior, "-e", 1, "-o", tmp_path / "s.json")
    digest = single.stderr.split("--digest ")[1].split()[0]
    assert sv.load(tmp_path / "s.json", policy=sv.Policy(digest=digest)).digest == digest


def test_a_policy_can_require_a_public_prior(tmp_path: Path, users: Path) -> None:
    private = sv.Prior.from_counts({"a": 5, "b": 3, "c": 2}, provenance="users")
    marked = sv.certify(sv.kernel_clip(private, 1.0), provenance="users")
    marked.save(tmp_path / "m.json")
    save_mechanisms({"old": mechanism(), "young": marked}, "age", tmp_path / "g.json")
    assert sv.load(tmp_path / "m.json", policy=ANY).provenance == "users"
    with pytest.raises(sv.errors.MechanismFileError, match="the policy wants a public one"):
        sv.load(tmp_path / "m.json", policy=sv.Policy(max_epsilon="any", provenance="public"))
    with pytest.raises(sv.errors.MechanismFileError, match=r"group 'young'.*the policy wants a public one"):
        sv.load_groups(tmp_path / "g.json", policy=sv.Policy(max_epsilon="any", provenance="public"))
    out = ["-o", tmp_path / "r.csv"]
    check_refused(
        run("release", "--max-epsilon", "100", tmp_path / "m.json", users, *out), "--provenance users"
    )
    noted = run("release", "--max-epsilon", "100", tmp_path / "m.json", users, *out, "--provenance", "users")
    assert noted.returncode == 0
    assert "made from the very users it serves" in noted.stderr


def test_comparing_publishes_no_groups(tmp_path: Path) -> None:
    prior = write(tmp_path, "prior.csv", "item,count,shop\na,5,x\nb,3,x\na,1,y\nb,2,y\n")
    table = write(tmp_path, "t.csv", "user,item,shop\nann,a,x\nann,b,y\nbob,b,x\n")
    done = run("compare", prior, table, "-e", 1, "--by", "shop", "-s", "kernel-clip", "--json")
    assert done.returncode == 0, done.stderr
    assert sum(row["users"] for row in json.loads(done.stdout)["rows"]) == 3


def test_a_column_with_control_characters_cannot_rewrite_the_terminal(tmp_path: Path, users: Path) -> None:
    path, _ = hostile(tmp_path, "age", ["old", "young"])
    plain = json.loads(path.read_text())
    del plain["digest"]
    plain["by"] = "age\x1b[2J"
    (tmp_path / "e.json").write_text(json.dumps({**plain, "digest": digest_of(plain)}))
    done = run("release", "--max-epsilon", "100", tmp_path / "e.json", users, "-o", tmp_path / "r.csv")
    check_refused_last(done, "does not have the fields of a file of groups")
    assert "\x1b" not in done.stderr


def test_output_columns_never_overwrite_each_other(tmp_path: Path) -> None:
    for by in ("epsilon", "mechanism"):
        path, digest = hostile(tmp_path, by, ["x"])
        table = write(tmp_path, "t.csv", f"user,item,{by}\nann,a,x\n")
        done = run("release", path, table, "-o", tmp_path / "r.csv", "--digest", digest)
        check_refused(done, "must differ, and not be named epsilon or mechanism")
    path, digest = hostile(tmp_path, "pay", ["x"])
    paid = write(tmp_path, "w.csv", "user,pay\nann,x\n")
    arguments = ["--item", "pay", "--by", "pay", "-o", tmp_path / "r.csv"]
    check_refused(run("release", "--max-epsilon", "100", path, paid, *arguments), "cannot be a group")
    assert not (tmp_path / "r.csv").exists()


def test_promise_14_one_person_in_two_codings_has_two_groups(tmp_path: Path) -> None:
    path, _ = hostile(tmp_path, "age", ["old", "young"])
    for other in ("Zoe\u0308", "Zo\u00eb "):
        table = write(tmp_path, "t.csv", f"user,item,age\nZo\u00eb,a,old\n{other},b,young\n")
        done = run("release", "--max-epsilon", "100", path, table, "-o", tmp_path / "r.csv", "--by", "age")
        check_refused(done, "1 of 2 users have more than one value in column 'age'")


@pytest.mark.parametrize("name", ["x" * 101, "line\nbreak", ""])
def test_names_of_groups_are_short_printable_text(tmp_path: Path, name: str) -> None:
    with pytest.raises(sv.errors.ParameterError, match="names of groups"):
        save_mechanisms({name: mechanism()}, "age", tmp_path / "m.json")
    path, _ = hostile(tmp_path, "age", [name])
    with pytest.raises(sv.errors.MechanismFileError, match="does not have the fields") as caught:
        sv.load_groups(path, policy=ANY)
    assert len(str(caught.value)) < 300
