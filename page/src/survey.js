/** Surveys: the variance of what a collector learns, and the base that makes it smallest. */

const LARGEST_BASE = 4096;
const LARGEST_TRANSFORM = 2 ** 24;
/** The normal quantile of 95 %. */
export const Z = 1.959963984540054;

/** How many digits number so many categories in a base. */
function digitsOf(categories, base) {
  let digits = 1;
  for (let reach = base; reach < categories; reach *= base) digits++;
  return digits;
}

/** P₁ and P₀: the chance that a report supports its own category, and another one. */
function supports(categories, base, epsilon) {
  const values = base ?? categories;
  const digits = base === null ? 1 : digitsOf(categories, base);
  const same = base === null ? 0 : (base ** (digits - 1) - 1) / (base ** digits - 1);
  const small = Math.exp(-epsilon);
  const own = 1 / (1 + (values - 1) * small);
  return [own, same * own + (1 - same) * own * small];
}

/**
 * Half of the 95 % interval of a share from m reports, as the library computes it: with π = P₀ + share·(P₁ − P₀) one report
 * has the variance v = π(1 − π)/(P₁ − P₀)² and the reach r = 1/(P₁ − P₀), and the half is z·√((v + z²r²/(2m))/m).
 */
export function halfWidth(share, reports, categories, { base }, epsilon) {
  const [own, other] = supports(categories, base, epsilon);
  const gap = own - other;
  const support = other + share * gap;
  const reach = 1 / gap;
  return Z * Math.sqrt((support * (1 - support) * reach ** 2 + (Z * Z * reach ** 2) / (2 * reports)) / reports);
}

/** P₀(1 − P₀)/(P₁ − P₀)², m times the variance of a rare category; `base` null asks for the category itself. */
export function responseVariance(categories, base, epsilon) {
  if ((base ?? categories) === 1) return 0;
  const [own, support] = supports(categories, base, epsilon);
  return own - support > 1e-150 ? (support * (1 - support)) / (own - support) ** 2 : Infinity;
}

/** The primes below 4,096. */
const primes = () => {
  const out = [];
  for (let k = 2; k <= LARGEST_BASE; k++) if (out.every((p) => k % p)) out.push(k);
  return out;
};

/** The survey of so many categories: its base (null for randomized response) and variance. */
export function surveyOf(categories, epsilon) {
  const most = Math.max(LARGEST_TRANSFORM, 2 * categories);
  const fits = (f) => f < categories && f ** digitsOf(categories, f) <= most;
  return [null, ...primes().filter(fits)]
    .map((base) => ({ base, variance: responseVariance(categories, base, epsilon) }))
    .reduce((best, one) => (one.variance < best.variance ? one : best));
}
