/** The intervals of a survey: how often they hold, by the binomial law itself. */
import assert from "node:assert/strict";
import test from "node:test";
import { halfWidth, surveyOf } from "../src/survey.js";

/** The chance that a binomial number lies within bounds. */
function between(n, p, low, high) {
  let term = Math.exp(n * Math.log1p(-p));
  let total = 0;
  for (let k = 0; k <= n; k++) {
    if (k >= low && k <= high) total += term;
    term *= ((n - k) / (k + 1)) * (p / (1 - p));
  }
  return total;
}

test("a share lies within its interval in 95 % of the surveys or more", () => {
  for (const [categories, epsilon, share, reports] of [[18, 2, 0.19, 1000], [18, 4, 0.19, 1000], [18, 6, 0.02, 1000], [2, 3, 0.5, 500]]) {
    const survey = surveyOf(categories, epsilon);
    assert.equal(survey.base, null); // randomized response: the reports of a category are binomial
    const other = 1 / (Math.expm1(epsilon) + categories);
    const gap = Math.expm1(epsilon) * other;
    const half = halfWidth(share, reports, categories, survey, epsilon);
    const ends = [share - half, share + half].map((x) => reports * (other + x * gap));
    const held = between(reports, other + share * gap, ...ends);
    assert.ok(held >= 0.948 && held < 0.99, `${held} for ${categories}, ${epsilon}, ${share}, ${reports}`);
  }
});

test("with few reports at a small epsilon nothing is learned", () => assert.ok(halfWidth(0.2, 100, 18, surveyOf(18, 0.25), 0.25) > 1));
