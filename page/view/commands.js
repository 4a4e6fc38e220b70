/** The commands and the Python lines that reproduce what is on the screen. */

/** A word of a command, quoted where a shell needs it. */
export const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

/** A file; one whose name begins like an option needs its folder. */
const file = (path) => quoted(path.startsWith("-") ? `./${path}` : path);

/** A sampler as -s takes it. */
export function typed({ name, options }) {
  const shown = name === "fitted" ? { promise: options.promise } : options;
  const given = Object.entries(shown).filter(([key, value]) => value !== undefined && key !== "geometry");
  return name.replaceAll("_", "-") + (given.length ? `:${given.map(([key, value]) => `${key}=${value}`).join(",")}` : "");
}

/** The options that read the public table. */
const reading = ({ item, count, by, read }) =>
  [["item", item === "item" ? "" : item], ["count", count], ["by", by], ["read", read]]
    .map(([name, value]) => (value ? ` --${name} ${quoted(value)}` : "")).join("");

/** The options that read the users' table. */
const readingUsers = ({ by, users }) =>
  [["user", users.user === "user" ? "" : users.user], ["item", users.item === "item" ? "" : users.item], ["weight", users.weight], ["by", by], ["read", users.read]]
    .map(([name, value]) => (value ? ` --${name} ${quoted(value)}` : "")).join("");

/** Commands in the order in which they are run: { title, command }. */
export function commands(source, { epsilon, row, recommended, options, horizon }) {
  const prior = file(source.prior);
  const near = source.near ? ` --near ${quoted(source.near)}` : "";
  const wishes = (options.oneRecord ? " --one-record" : "") + (options.sameForEverybody ? " --same-for-everybody" : "") + (options.keepPrior ? "" : " --any-prior");
  // Each group has its own recommendation.
  const all = recommended && source.by && !wishes && !near;
  const users = source.users ?? { path: "users.csv", user: "user", item: source.item };
  const made = [
    ["Get the recommendation, with its limit", `sottovoce choose ${prior} -e ${epsilon}${wishes}${reading(source)}${near}`],
    ["Certify the sampler on the screen", `sottovoce design ${prior} -e ${epsilon} -s ${all ? "auto" : typed(row)} -o mechanism.json${reading(source)}${row.name === "nearest" ? near : ""}`],
    ["Release one category per user", `sottovoce release mechanism.json ${file(users.path)} --max-epsilon ${epsilon} -o released.csv${readingUsers({ by: source.by, users })}`],
    ["Certify a stream instead: any number of releases", `sottovoce design ${prior} -e ${epsilon} -s stream:horizon=${horizon} -o stream.json${reading(source)}${near}`],
  ];
  return made.map(([title, command]) => ({ title, command }));
}

/** Categories up to which Python lines write the data out. */
export const SHORT = 24;
const text = (value) => JSON.stringify(value);

/** The prior in Python: written out where it is short, else counted from the table. */
function priorLines({ source, group }) {
  if (group.categories.length <= SHORT) {
    const [names, weights] = [group.categories.map(text), group.weights.map((one) => String(Number(one.toPrecision(6))))].map((list) => list.join(", "));
    return `prior = sv.Prior.from_counts([${weights}], [${names}])`;
  }
  const dialect = (source.read || "").split(",").filter(Boolean).map((pair) => pair.replace(/=(.*)/, '="$1"')).join(", ");
  const columns = [`item=${text(source.item)}`, ...(source.count && source.count !== "none" ? [`weight=${text(source.count)}`] : []), ...(source.by ? [`by=${text(source.by)}`] : []), ...(dialect ? [`dialect=sv.Dialect(${dialect})`] : [])];
  return `prior = sv.build_prior(${text(source.prior)}, ${columns.join(", ")})${source.by ? `[${text(group.name)}]` : ""}`;
}

/** The records of a person, most of a category first. */
function records({ categories }, counts) {
  const times = [...counts.values()].every(Number.isInteger) ? 1 : 1000; // of fractions thousandths
  const own = [...counts].sort((a, b) => b[1] - a[1]);
  return own.map(([i, count]) => `[${text(categories[i])}] * ${Math.max(1, Math.round(times * count))}`).join(" + ");
}

const CAMEL = { oneRecord: "one_record=True", sameForEverybody: "same_for_everybody=True" };

/** Python lines that print the law on the screen and release from it. */
export function python({ source, geometry, group, epsilon, row, recommended, options, counts }) {
  const wishes = Object.entries(CAMEL).filter(([key]) => options[key]).map(([, given]) => `, ${given}`).join("") + (options.keepPrior ? "" : ", keep_prior=False");
  const { promise, share } = row.options;
  const more = promise === undefined ? share === undefined ? "" : `, share=${share}` : `, promise=${promise}`;
  const near = geometry ? ", geometry=geometry" : "";
  const made = `sv.${row.name}(prior, ${epsilon}${row.name === "nearest" ? ", geometry" : ""}${more})`;
  const sampler = recommended ? `sv.choose(prior, ${epsilon}${wishes}${near}).sampler` : made;
  const distance = geometry ? "sv.wasserstein(geometry)" : "sv.TV";
  return [
    "import sottovoce as sv",
    ...(geometry ? ["from sottovoce.geometry import Geometry"] : []),
    "",
    priorLines({ source, group }),
    ...(geometry ? [`geometry = Geometry((${geometry.parents.join(", ")}), (${geometry.lengths.join(", ")}), ${geometry.unit})`] : []),
    `sampler = ${sampler}`,
    `mine = prior.frequencies(${records(group, counts)})`,
    `print(sampler.distribution(mine).round(3), sampler.divergence(mine, ${distance}))`,
    "print(sv.certify(sampler).release(p=mine))",
  ].join("\n");
}
