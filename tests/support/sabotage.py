"""Changes to the definitions and hypotheses of the proofs, and the lemma that each must break.

A change keeps the shape of what it changes where it can: a bound moved by one, a rounding turned round, a
hypothesis made weaker. A proof that fails shows that it uses what was changed, not that the theorem is false
without it. Where a change breaks nothing, the reason is stated in place of the lemma.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent.parent.parent / "proofs"
ORDER = re.search(r"^for file in ([\w ]+); do$", (SOURCES / "build.sh").read_text(), re.MULTILINE)


class Change(NamedTuple):
    """In this file `old`, which stands there once, becomes `new`."""

    file: str
    old: str
    new: str
    breaks: str = ""
    """The file and the lemma that must fail."""
    harmless: str = ""
    """Why nothing fails."""


CHANGES: dict[str, Change] = {
    "words: one too few": Change(
        "Sums",
        "map Z.of_nat (seq 0 (Z.to_nat N))",
        "map Z.of_nat (seq 0 (Z.to_nat (N - 1)))",
        breaks="Sums.length_words",
    ),
    "words: from 1": Change(
        "Sums",
        "map Z.of_nat (seq 0 (Z.to_nat N))",
        "map Z.of_nat (seq 1 (Z.to_nat N))",
        breaks="Sums.in_words",
    ),
    "total: forgets the first": Change(
        "Sums",
        "x :: rest => f x + total f rest",
        "x :: rest => total f rest",
        breaks="Sums.total_ext_in",
    ),
    "pick: <= for <": Change(
        "Draw",
        "x :: rest => if u <? x then 0%nat else S (pick rest (u - x))",
        "x :: rest => if u <=? x then 0%nat else S (pick rest (u - x))",
        breaks="Draw.pick_spec",
    ),
    "bisection: <= for <": Change(
        "Draw",
        "if x <? at_ a mid then",
        "if x <=? at_ a mid then",
        breaks="Draw.bisect_loop_spec",
    ),
    "bisection: one step too far": Change(
        "Draw",
        "bisect_loop fuel' a x (S mid) hi",
        "bisect_loop fuel' a x (S (S mid)) hi",
        breaks="Draw.bisect_loop_spec",
    ),
    "ceil: rounds down": Change(
        "Draw",
        "Definition ceil (a b : Z) : Z := - ((- a) / b).",
        "Definition ceil (a b : Z) : Z := a / b.",
        breaks="Draw.ceil_spec",
    ),
    "shares: without the beginning": Change(
        "Draw",
        "(ceil ((e + x) * N) S - ceil (e * N) S) ::",
        "(ceil ((e + x) * N) S) ::",
        breaks="Draw.shares_sum",
    ),
    "records: <= for <": Change(
        "Draw",
        "if number - k <? 0 then",
        "if number - k <=? 0 then",
        breaks="Draw.walk_records_pick",
    ),
    "privacy: A above e^ε": Change(
        "Privacy",
        "(0 < down)%Z /\\ IZR up / IZR down <= exp epsilon",
        "(0 < down)%Z /\\ IZR up / IZR down <= 2 * exp epsilon",
        breaks="Privacy.counts_to_probabilities",
    ),
    "privacy: a negative count": Change(
        "Privacy",
        "(0 < N)%Z -> (0 <= c')%Z -> at_most_exp",
        "(0 < N)%Z -> (-1 <= c')%Z -> at_most_exp",
        breaks="Privacy.counts_to_probabilities",
    ),
    "privacy: any number of tapes": Change(
        "Privacy",
        "  (0 < N)%Z -> (0 <= c')%Z",
        "  (-1 < N)%Z -> (0 <= c')%Z",
        breaks="Privacy.counts_to_probabilities",
    ),
    "privacy: the other way round": Change(
        "Privacy",
        "(down * c <= up * c')%Z ->\n",
        "(up * c <= down * c')%Z ->\n",
        breaks="Privacy.counts_to_probabilities",
    ),
    "ratio: the lower sum rounded up": Change(
        "Exp",
        "let s := s * a / (b * j) in",
        "let s := ceil (s * a) (b * j) in",
        breaks="Exp.series_sound",
    ),
    "ratio: the upper sum rounded down": Change(
        "Exp",
        "let t := ceil (t * a) (b * j) in",
        "let t := t * a / (b * j) in",
        breaks="Exp.series_sound",
    ),
    "ratio: the rest is forgotten": Change(
        "Exp",
        "Some (S, T + 2 * t)",
        "Some (S, T)",
        breaks="Exp.series_sound",
    ),
    "ratio: the rest is half as large": Change(
        "Exp",
        "Some (S, T + 2 * t)",
        "Some (S, T + t)",
        breaks="Exp.series_sound",
    ),
    "ratio: stops too early": Change(
        "Exp",
        "(2 * a <=? b * (j + 1)) && (t <=? 1)",
        "(a <=? 2 * b * (j + 1)) && (t <=? 1)",
        breaks="Exp.series_sound",
    ),
    "ratio: the bounds need not agree": Change(
        "Exp",
        "if lower / unit =? upper / unit then Some (lower / unit)",
        "if lower / unit =? lower / unit then Some (lower / unit)",
        breaks="Exp.scaled_exp_sound",
    ),
    "ratio: the upper end": Change(
        "Exp",
        "then Some (lower / unit)",
        "then Some (upper / unit + 1)",
        breaks="Exp.scaled_exp_sound",
    ),
    "ratio: not compared": Change(
        "Exp",
        "| Some e => up * 2 ^ 64 =? e * down",
        "| Some e => up * 2 ^ 64 =? up * 2 ^ 64",
        breaks="Exp.check_ratio_sound",
    ),
    "ratio: anything below": Change(
        "Exp",
        "| Some e => up * 2 ^ 64 =? e * down",
        "| Some e => up * 2 ^ 64 <=? e * down",
        breaks="Exp.check_ratio_sound",
    ),
    "box: caps rounded up": Change(
        "Box",
        "map (fun l => Z.min (up * l / down) N) low.",
        "map (fun l => Z.min (- (- (up * l) / down)) N) low.",
        breaks="Box.highs_at",
    ),
    "box: caps one above": Change(
        "Box",
        "map (fun l => Z.min (up * l / down) N) low.",
        "map (fun l => Z.min (up * l / down + 1) N) low.",
        breaks="Box.highs_at",
    ),
    "box: A below 1": Change(
        "Box",
        "(0 <? down) && (down <=? up)",
        "(0 <? down) && (down <=? up + 1)",
        breaks="Box.check_box_true",
    ),
    "box: floors of nothing": Change(
        "Box",
        "forallb (fun l => 1 <=? l) low\n",
        "forallb (fun l => -1 <=? l) low\n",
        breaks="Box.check_box_true",
    ),
    "box: caps need not fill": Change(
        "Box",
        "(N <=? sum (highs up down N low))",
        "(N <=? sum (highs up down N low) + 1)",
        breaks="Box.check_box_true",
    ),
    "box: floors may overflow": Change(
        "Box",
        "(sum low <=? N)",
        "(sum low <=? N + 1)",
        breaks="Box.check_box_true",
    ),
    "box: a law above its caps": Change(
        "Box",
        "at_ low i <= at_ w i <= at_ high i.",
        "at_ low i <= at_ w i <= at_ high i + 1.",
        breaks="Box.box_private_units",
    ),
    "clip: floored too rarely": Change(
        "Clip",
        "left * k it <=? lo it * slope",
        "left * k it <? lo it * slope",
        breaks="Clip.inside_step",
    ),
    "clip: capped too rarely": Change(
        "Clip",
        "negb (floored left slope it) && (hi it * slope <=? left * k it)",
        "negb (floored left slope it) && (hi it * slope <? left * k it)",
        breaks="Clip.inside_step",
    ),
    "clip: floors and caps exchanged": Change(
        "Clip",
        "if 0 <? balance then clip_loop",
        "if balance <? 0 then clip_loop",
        breaks="Clip.clip_loop_right",
    ),
    "clip: one unit is lost": Change(
        "Clip",
        "then (q + 1) :: give left slope (spare - 1) rest",
        "then q :: give left slope (spare - 1) rest",
        breaks="Clip.give_sum",
    ),
    "clip: one round too few": Change(
        "Clip",
        "clip_loop (S (length items)) target",
        "clip_loop (length items) target",
        breaks="Clip.exact_clip_right",
    ),
    "clip: what is capped takes its floor": Change(
        "Clip",
        "clip_loop fuel' (left - taken hi q l)",
        "clip_loop fuel' (left - taken lo q l)",
        breaks="Clip.clip_loop_right",
    ),
    "walk: <= for <": Change(
        "BoxRelease",
        "else if u <? start + w then p",
        "else if u <=? start + w then p",
        breaks="BoxRelease.walk_found",
    ),
    "walk: the shift is forgotten": Change(
        "BoxRelease",
        "walk before low rest (shift + (w - at_ low p)) u",
        "walk before low rest shift u",
        breaks="BoxRelease.walk_found",
    ),
    "box release: by a remainder": Change(
        "BoxRelease",
        "((u - filled) * room / (N - filled))",
        "((u - filled) mod room)",
        breaks="BoxRelease.box_release_law",
    ),
    "box release: own categories have room": Change(
        "BoxRelease",
        "let room := sum above - total (at_ above) (map fst units) in",
        "let room := sum above in",
        breaks="BoxRelease.box_release_law",
    ),
    "box release: a count of nothing": Change(
        "BoxRelease",
        "Forall (fun '(_, k) => 1 <= k) weights.",
        "Forall (fun '(_, k) => 0 <= k) weights.",
        breaks="BoxRelease.clipped_right",
    ),
    "box release: positions in any order": Change(
        "BoxRelease",
        "(start <= p < n)%nat /\\ ordered (S p) n rest",
        "(start <= p < n)%nat /\\ ordered p n rest",
        breaks="BoxRelease.ordered_in",
    ),
    "kernel: the least tail without its unit": Change(
        "Kernel",
        "(least_r s * prior c / least_s s - 1)",
        "(least_r s * prior c / least_s s)",
        breaks="Kernel.check_column_sound",
    ),
    "kernel: the largest tail without its unit": Change(
        "Kernel",
        "(1 + ceil (most_r s * prior c) (most_s s))",
        "(ceil (most_r s * prior c) (most_s s))",
        breaks="Kernel.check_column_sound",
    ),
    "kernel: the ratio one unit too large": Change(
        "Kernel",
        "(largest * down <=? up * smallest)",
        "(largest * down <=? up * smallest + 1)",
        breaks="Kernel.check_column_sound",
    ),
    "kernel: a smallest weight of nothing": Change(
        "Kernel",
        "(1 <=? smallest) &&",
        "(0 <=? smallest) &&",
        breaks="Kernel.check_column_sound",
    ),
    "kernel: the least tail is the largest": Change(
        "Kernel",
        "let down := R * least_s s <? least_r s * S in",
        "let down := least_r s * S <? R * least_s s in",
        breaks="Kernel.knows_with_row",
    ),
    "kernel: the last row need not add up": Change(
        "Kernel",
        "if last then tail =? 0",
        "if last then 0 <=? tail",
        breaks="Kernel.check_columns_sound",
    ),
    "kernel: a negative tail": Change(
        "Kernel",
        "else if 0 <=? tail then",
        "else if -1 <=? tail then",
        breaks="Kernel.check_columns_sound",
    ),
    "kernel: the prior in any order": Change(
        "Kernel",
        "&& ascending (priors k) &&",
        "&& true &&",
        harmless="privacy does not need an ascending prior; the format asks for it",
    ),
    "kernel: a prior of nothing": Change(
        "Kernel",
        "forallb (fun c => 1 <=? prior c) k",
        "forallb (fun c => 0 <=? prior c) k",
        breaks="Kernel.check_kernel_true",
    ),
    "kernel: draws its own too often": Change(
        "Kernel",
        "else if u <? start + at_ (owns k) r then r",
        "else if u <=? start + at_ (owns k) r then r",
        breaks="Kernel.row_law",
    ),
    "kernel: the tail begins with the row itself": Change(
        "Kernel",
        "let behind := at_ (before (priors k)) (S r) in",
        "let behind := at_ (before (priors k)) r in",
        breaks="Kernel.row_law",
    ),
    "response: one category too many": Change(
        "Response",
        "(own + (Z.of_nat kept - 1) * other =? N)",
        "(own + Z.of_nat kept * other =? N)",
        breaks="Response.check_response_true",
    ),
    "response: the ratio one way": Change(
        "Response",
        "(most * down <=? up * least).",
        "(own * down <=? up * least).",
        breaks="Response.check_response_true",
    ),
    "response: nothing is kept": Change(
        "Response",
        "(0 <? kept)%nat &&",
        "(0 <=? kept)%nat &&",
        breaks="Response.check_response_true",
    ),
    "response: weights of nothing": Change(
        "Response",
        "(1 <=? least) &&",
        "(0 <=? least) &&",
        breaks="Response.check_response_true",
    ),
    "response: > for >=": Change(
        "Response",
        "if (s <=? step)%nat then S step else step",
        "if (s <? step)%nat then S step else step",
        breaks="Response.response_law",
    ),
    "survey: base 1": Change(
        "Survey",
        "(2 <=? base) && (base <? 65536)",
        "(1 <=? base) && (base <? 65536)",
        breaks="Survey.check_survey_true",
    ),
    "survey: a base that is no prime": Change(
        "Survey",
        "(base <=? f) || negb (base mod f =? 0)",
        "(base <=? f) || negb (base mod f =? f)",
        harmless="a prime makes estimates possible; privacy does not need it",
    ),
    "survey: the answer is not reduced": Change(
        "Survey",
        "(Z.of_nat place) mod base).",
        "(Z.of_nat place)).",
        breaks="Survey.right_answer_ok",
    ),
    "survey: the question depends on the user": Change(
        "Survey",
        "let question := asked * questions base n / N in\n  let value",
        "let question := (asked + Z.of_nat place) * questions base n / N in\n  let value",
        breaks="Survey.surveys_private",
    ),
    "charges: rounded down": Change(
        "Compose",
        "Definition charge_of (a b : Z) : Z := ceil (a * MICRO) b.",
        "Definition charge_of (a b : Z) : Z := a * MICRO / b.",
        breaks="Compose.charge_covers",
    ),
    "budgets: rounded up": Change(
        "Compose",
        "Definition budget_of (a b : Z) : Z := a * MICRO / b.",
        "Definition budget_of (a b : Z) : Z := ceil (a * MICRO) b.",
        breaks="Compose.budget_is_below",
    ),
    "budget: a later charge is free": Change(
        "Compose",
        "within_budget (budget - charge_of a b) (next i)",
        "within_budget budget (next i)",
        breaks="Compose.composition",
    ),
    "budget: one micro too much": Change(
        "Compose",
        "| Done => (0 <= budget)%Z",
        "| Done => (-1 <= budget)%Z",
        breaks="Compose.composition",
    ),
    "budget: a release that is not private": Change(
        "Compose",
        "0 <= law i <= exp (IZR a / IZR b) * other i)",
        "0 <= law i <= 2 * exp (IZR a / IZR b) * other i)",
        breaks="Compose.composition",
    ),
    "stream: V rounded down": Change(
        "Stream",
        "least_ratio (low : Z) : Z := ceil (one * unit) low.",
        "least_ratio (low : Z) : Z := one * unit / low.",
        breaks="Stream.step_in_range",
    ),
    "stream: U rounded up": Change(
        "Stream",
        "most_ratio (high : Z) : Z := most * unit / high.",
        "most_ratio (high : Z) : Z := ceil (most * unit) high.",
        breaks="Stream.step_in_range",
    ),
    "stream: low rounded up": Change(
        "Stream",
        "(Z.max (low * (w / q) / unit) one,",
        "(Z.max (ceil (low * ceil w q) unit) one,",
        breaks="Stream.moved_encloses",
    ),
    "stream: high rounded down": Change(
        "Stream",
        "Z.min (ceil (high * ceil w q) unit) most)",
        "Z.min (high * (w / q) / unit) most)",
        breaks="Stream.moved_encloses",
    ),
    "stream: the state stays": Change(
        "Stream",
        "/\\ fits (fst (moved low high q w)) (snd (moved low high q w)) rest",
        "/\\ fits low high rest",
        breaks="Stream.bounds_hold",
    ),
    "stream: low is not cut to 1": Change(
        "Stream",
        "(Z.max (low * (w / q) / unit) one,",
        "(Z.max (low * (w / q) / unit) 0,",
        breaks="Stream.moved_encloses",
    ),
    "stream: high is not cut to A": Change(
        "Stream",
        "Z.min (ceil (high * ceil w q) unit) most)",
        "Z.min (ceil (high * ceil w q) unit) (most + 1))",
        breaks="Stream.moved_encloses",
    ),
    "stream: a start below 1": Change(
        "Stream",
        "Hypothesis start_in_range : one <= start <= most.",
        "Hypothesis start_in_range : one - 1 <= start <= most.",
        breaks="Stream.transcript_private",
    ),
    "stream: a start above A": Change(
        "Stream",
        "Hypothesis start_in_range : one <= start <= most.",
        "Hypothesis start_in_range : one <= start <= most + 1.",
        breaks="Stream.transcript_private",
    ),
    "stream: A rounded up": Change(
        "Stream",
        "Hypothesis most_below : most * down <= one * up.",
        "Hypothesis most_below : most * down <= one * up + down.",
        breaks="Stream.transcript_private",
    ),
    "checker: epsilon may be 0": Change(
        "Checker",
        "&& (0 <? a) && (0 <? b)",
        "&& (-1 <? a) && (0 <? b)",
        breaks="Together.checked_heading",
    ),
    "checker: any number of bits": Change(
        "Checker",
        "(1 <=? bits) && (bits <=? 62)",
        "(-1 <=? bits) && (bits <=? 62)",
        breaks="Checker.check_sound",
    ),
    "checker: fractions that can be reduced": Change(
        "Checker",
        "(Z.gcd a b =? 1)",
        "(1 <=? Z.gcd a b)",
        harmless="one way to write a fraction; the value of A is decided all the same",
    ),
    "checker: the ratio of another epsilon": Change(
        "Checker",
        "&& check_ratio (epsilon_up m) (epsilon_down m) (ratio_up m)",
        "&& check_ratio (epsilon_up m + 1) (epsilon_down m) (ratio_up m)",
        breaks="Checker.check_sound",
    ),
    "checker: floors of another size": Change(
        "Checker",
        "      has_size n low && wholes N low",
        "      has_size (n + 1) low && wholes N low",
        breaks="Checker.check_sound",
    ),
    "checker: an order with a gap": Change(
        "Checker",
        "has_size n order && counts_up 0 (ZSort.sort order)",
        "has_size n order && counts_up 1 (ZSort.sort order)",
        breaks="Checker.check_sound",
    ),
    "checker: keeps any prior": Change(
        "Checker",
        "&& Bool.eqb keeps (all_between low prior (highs up down N low))",
        "&& Bool.eqb keeps keeps",
        harmless="no theorem is attached to the claim about the prior",
    ),
    "checker: a kept category that is none": Change(
        "Checker",
        "forallb (fun x => x <? n) kept",
        "forallb (fun x => x <=? n) kept",
        breaks="Checker.check_releases",
    ),
    "checker: kept twice": Change(
        "Checker",
        "strictly_above (-1) sorted &&",
        "strictly_above (-1) [] &&",
        harmless="the slots of a response are private, whichever categories they name",
    ),
    "checker: a prior of nothing": Change(
        "Checker",
        "has_size n prior && forallb (fun x => 1 <=? x) prior",
        "has_size n prior && forallb (fun x => 0 <=? x) prior",
        breaks="Checker.check_sound",
    ),
    "stream check: a start below 1": Change(
        "StreamCheck",
        "&& between (one_of s) (stream_start s) (most_of s)",
        "&& between (one_of s - 1) (stream_start s) (most_of s)",
        breaks="StreamCheck.checked_numbers",
    ),
    "stream check: a start above A": Change(
        "StreamCheck",
        "&& between (one_of s) (stream_start s) (most_of s)",
        "&& between (one_of s) (stream_start s) (most_of s + 1)",
        breaks="StreamCheck.checked_numbers",
    ),
    "stream check: A rounded up": Change(
        "StreamCheck",
        "stream_ratio_up s * one_of s / stream_ratio_down s.",
        "ceil (stream_ratio_up s * one_of s) (stream_ratio_down s).",
        breaks="StreamCheck.checked_numbers",
    ),
    "stream check: any A": Change(
        "StreamCheck",
        "(binary_digits (whole_ratio s) <=? 40)",
        "(binary_digits (whole_ratio s) <=? 64)",
        breaks="StreamCheck.checked_numbers",
    ),
    "stream check: the ratio of another epsilon": Change(
        "StreamCheck",
        "&& check_ratio (stream_epsilon_up s) (",
        "&& check_ratio (stream_epsilon_up s + 1) (",
        breaks="StreamCheck.check_stream_sound",
    ),
    "stream check: low rounded up": Change(
        "StreamCheck",
        "let least := w / q in",
        "let least := - (- w / q) in",
        breaks="StreamCheck.moved_as_coded",
    ),
    "stream check: high rounded down": Change(
        "StreamCheck",
        "(- Z.shiftr (- high * most) (ratio_bits s))",
        "(Z.shiftr (high * most) (ratio_bits s))",
        breaks="StreamCheck.moved_as_coded",
    ),
    "stream check: another unit": Change(
        "StreamCheck",
        "Definition unit_of (s : stream) : Z := 2 ^ ratio_bits s.",
        "Definition unit_of (s : stream) : Z := 2 ^ (ratio_bits s + 1).",
        breaks="StreamCheck.moved_as_coded",
    ),
    "stream check: a prior of nothing": Change(
        "StreamCheck",
        "  check_prior (prior_total s) (stream_size s) (stream_prior s)",
        "  check_prior (prior_total s) (stream_size s + 1) (stream_prior s)",
        breaks="StreamCheck.public_law_right",
    ),
    "stream check: persistence of everything": Change(
        "StreamCheck",
        "between 0 (stream_persistence s) 1023",
        "between 0 (stream_persistence s) 1024",
        breaks="StreamCheck.public_law_right",
    ),
    "stream check: negative persistence": Change(
        "StreamCheck",
        "between 0 (stream_persistence s) 1023",
        "between (-1) (stream_persistence s) 1023",
        breaks="StreamCheck.public_law_right",
    ),
    "stream check: any pace": Change(
        "StreamCheck",
        "forallb (fun x => between 0 x 256) (stream_pace s)",
        "forallb (fun x => between 0 x 512) (stream_pace s)",
        harmless="a pace only makes the box smaller, and laws of a smaller box are in the box",
    ),
    "stream check: a law below V": Change(
        "StreamCheck",
        "  0 < q /\\ least_ratio (one_of s) (unit_of s) low * q <= at_ (law past) i <=",
        "  0 < q /\\ least_ratio (one_of s) (unit_of s) low * q - 1 <= at_ (law past) i <=",
        breaks="StreamCheck.in_box_fits",
    ),
    "together: a file is not checked": Change(
        "Together",
        "if check m && can_pay budget spent m",
        "if can_pay budget spent m",
        breaks="Together.answered_private",
    ),
    "together: the ledger answers everybody": Change(
        "Together",
        "spent + cost m <=? budget.",
        "spent <=? budget.",
        breaks="Together.answered_within_budget",
    ),
    "together: one micro too much": Change(
        "Together",
        "spent + cost m <=? budget.",
        "spent + cost m <=? budget + 1.",
        breaks="Together.answered_within_budget",
    ),
    "together: nothing is charged": Change(
        "Together",
        "(fun i => answered budget (spent + cost m) user other (past ++ [i]) (next i))",
        "(fun i => answered budget spent user other (past ++ [i]) (next i))",
        breaks="Together.answered_within_budget",
    ),
    "together: a refusal is paid": Change(
        "Together",
        "else answered budget spent user other past refused",
        "else answered budget (spent + 1) user other past refused",
        breaks="Together.answered_within_budget",
    ),
    "together: users without records": Change(
        "Together",
        "forall past m, check m = true -> has_records m (user past m).",
        "forall past m, check m = true -> user past m = user past m.",
        breaks="Together.answered_private",
    ),
    "lives: a file is not checked": Change(
        "Lives",
        "      if check m && can_pay budget spent m\n",
        "      if can_pay budget spent m\n",
        breaks="Lives.life_nonneg",
    ),
    "lives: a release is free": Change(
        "Lives",
        "* life_chance public budget (spent + cost m) who",
        "* life_chance public budget spent who",
        breaks="Lives.lives_private",
    ),
    "lives: a stream is free": Change(
        "Lives",
        "then life_chance public budget (spent + stream_cost s) who",
        "then life_chance public budget spent who",
        breaks="Lives.lives_private",
    ),
    "lives: a stream that cannot be paid": Change(
        "Lives",
        "if check_stream s && (spent + stream_cost s <=? budget)%Z",
        "if check_stream s && (spent <=? budget)%Z",
        breaks="Lives.lives_private",
    ),
    "lives: a stream is not checked": Change(
        "Lives",
        "if check_stream s && (spent + stream_cost s <=? budget)%Z",
        "if (spent + stream_cost s <=? budget)%Z",
        breaks="Lives.life_nonneg",
    ),
    "lives: a state is used twice": Change(
        "Lives",
        "who (replace life (next_state (public past life s) law now i) states)",
        "who states",
        breaks="Lives.life_nonneg",
    ),
    "lives: a stream begins elsewhere": Change(
        "Lives",
        "who ((s, stream_start s, stream_start s) :: states) past next event",
        "who ((s, stream_start s, (stream_start s + 1)%Z) :: states) past next event",
        breaks="Lives.life_nonneg",
    ),
    "lives: a law above U": Change(
        "Lives",
        "            <= most_ratio (most_of s) (unit_of s) high * q)%Z.",
        "            <= most_ratio (most_of s) (unit_of s) high * q + 1)%Z.",
        breaks="Lives.life_nonneg",
    ),
    "lives: a law below V": Change(
        "Lives",
        "(0 < q /\\ least_ratio (one_of s) (unit_of s) low * q <= at_ (rule",
        "(0 < q /\\ least_ratio (one_of s) (unit_of s) low * q - 1 <= at_ (rule",
        breaks="Lives.life_nonneg",
    ),
}  # fmt: skip


def files() -> list[str]:
    """The files in the order in which they are compiled, without the extraction."""
    assert ORDER
    return [name for name in ORDER[1].split() if name != "Extract"]


@cache
def needs(name: str) -> frozenset[str]:
    """The files that a file is built on, all of them."""
    text = (SOURCES / f"{name}.v").read_text(encoding="utf-8")
    direct = {
        each
        for line in re.findall(r"From Sottovoce Require Import ([\w ]+)\.", text)
        for each in line.split()
    }
    return frozenset(direct).union(*map(needs, direct))


def broken_by(change: Change, built: Path, folder: Path) -> str:
    """The first lemma that fails when the changed file and all that rest on it are compiled; "" if none."""
    source = (SOURCES / f"{change.file}.v").read_text(encoding="utf-8")
    if source.count(change.old) != 1:
        raise AssertionError(f"its place is not found once, but {source.count(change.old)} times")
    again = [name for name in files() if name == change.file or change.file in needs(name)]
    for name in files():
        shutil.copy(SOURCES / f"{name}.v", folder)
        if name not in again:
            shutil.copy(built / f"{name}.vo", folder)
    (folder / f"{change.file}.v").write_text(source.replace(change.old, change.new), encoding="utf-8")
    for name in again:
        command = ["coqc", "-q", "-Q", ".", "Sottovoce", f"{name}.v"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            return f"{name}.{_lemma((folder / f'{name}.v').read_text(encoding='utf-8'), done.stderr)}"
    return ""


def _lemma(text: str, message: str) -> str:
    """The lemma in whose proof the first error is; "nothing" where it is in no proof."""
    place = re.search(r"line (\d+), characters [\d-]+:\nError", message)
    if place is None:
        raise AssertionError(message)
    above = "\n".join(text.splitlines()[: int(place[1])])
    begun = re.findall(r"^(?:Lemma|Theorem) (\w+)|^(Qed)\.|(?: Qed)\.$", above, re.MULTILINE)
    return next((name for name, _ in reversed(begun) if name), "nothing")
