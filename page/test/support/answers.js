/** Answers for questions that the library answers too: tests/support/page_vectors.py has both and says what they hold. */
import { createHash } from "node:crypto";
import { choose } from "../../src/choose.js";
import {
  DIVERGENCES, alpha, distanceOf, hockeyStick, line, optimalUtility, releasedAsItself, wasserstein, worstCase,
} from "../../src/distances.js";
import { fitted } from "../../src/fitted.js";
import { keepsPrior, samplerOf } from "../../src/floors.js";
import { invented } from "../../src/invented.js";
import { lawOf, userOf } from "../../src/laws.js";
import { descending, pick, priorOf } from "../../src/numbers.js";
import { streamOf } from "../../src/stream.js";
import { surveyOf } from "../../src/survey.js";

/** The distances that are asked for. */
const distancesOf = (geometry) => [
  ...Object.values(DIVERGENCES), hockeyStick(2), alpha(0.5), alpha(3), alpha(-1), wasserstein(geometry),
];

/** Infinity, for which JSON has no number, as a word. */
const told = (x) => (x === Infinity ? "inf" : x);
const list = (values) => values && Array.from(values, told);

/** The digest of a crowd: where its users begin, their categories and their units, as integers of 64 bits. */
function digestOf({ starts, columns, units }) {
  const hash = createHash("sha256");
  for (const part of [starts, columns, units]) hash.update(new Uint8Array(BigInt64Array.from(part, BigInt).buffer));
  return hash.digest("hex");
}

/** A row of a choice. */
const NUMBERS = ["mean", "median", "p90", "p99", "maximum", "worstCase"];
const rowOf = (row) => row && { name: row.name, ...Object.fromEntries(NUMBERS.map((key) => [key, told(row[key])])) };

/** What is asked about one sampler and one of the users. */
function measured(q, epsilon, geometry, { name, options, user }) {
  const sampler = samplerOf(name, q, epsilon, { ...options, geometry });
  const own = userOf(user, q.length);
  const distances = distancesOf(geometry);
  return {
    floor: list(sampler.floor),
    keeps: keepsPrior(sampler),
    law: list(lawOf(sampler, own)),
    row: list(sampler.kernel?.row(q.length - 1) ?? null),
    itself: list(releasedAsItself(sampler)),
    distances: distances.map((one) => told(distanceOf(sampler, own, one))),
    worst: distances.map((one) => told(worstCase(sampler, one))),
  };
}

/** The integers of a stream; null where there is none. */
function stream(q, epsilon, horizon) {
  try {
    const { prior, pace, one, start, most } = streamOf(q, epsilon, horizon);
    return { prior: prior.map(String), pace, bounds: [one, start, most].map(String) };
  } catch {
    return null;
  }
}

/** The answer to a question. */
export function answer({ weights, epsilon, positions, geometry, samplers, fit, crowds, chosen, horizon, survey }) {
  const q = priorOf(weights);
  const places = positions ? line(positions) : geometry;
  const ranked = pick(q, descending(q));
  const choice = chosen && choose(q, epsilon, { ...chosen.options, geometry: chosen.near ? places : undefined });
  return {
    q: list(q),
    geometry: places,
    optimal: Object.values(DIVERGENCES).map((one) => told(optimalUtility(q, epsilon, one))),
    samplers: samplers.map((one) => measured(q, epsilon, places, one)),
    fitted: fit.map((options) => fitted(q, epsilon, options).options),
    crowds: crowds.map((crowd) => digestOf(invented(ranked, crowd))),
    stream: stream(q, epsilon, horizon),
    survey: surveyOf(survey, Math.max(epsilon, 1e-3)),
    chosen: choice && { best: rowOf(choice.best), second: rowOf(choice.runnerUp), all: choice.rows.map(rowOf) },
  };
}
