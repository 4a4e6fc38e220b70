/** Nights in an invented town: what four ways of publishing a place tell, and what an attacker makes of it. */
import { load } from "./client/core.js";
import { loadStream } from "./client/stream.js";

const element = (id) => document.getElementById(id);
const draw = (tag, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};
const town = await (await fetch("town.json")).json();
const perSide = town.width / town.cell;
const middle = (cell) => [((cell % perSide) + 0.5) * town.cell, (Math.floor(cell / perSide) + 0.5) * town.cell];
const cellOf = (place) => {
  const [east, north] = place.map((one) => Math.min(Math.max(Math.floor(one / town.cell), 0), perSide - 1));
  return north * perSide + east;
};
const apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
const mean = (places) => [0, 1].map((k) => places.reduce((sum, one) => sum + one[k], 0) / places.length);
/** The middle of the square with the smallest sum of distances to the places. */
const central = (places) => {
  const squares = town.density.map((_, cell) => middle(cell));
  const far = squares.map((one) => places.reduce((sum, other) => sum + apart(one, other), 0));
  return squares[far.indexOf(Math.min(...far))];
};

/** An offset of the planar Laplace distribution. It protects nobody here, so Math.random will do. */
function offset() {
  const angle = 2 * Math.PI * Math.random();
  const length = (-town.noise / 2) * Math.log((1 - Math.random()) * (1 - Math.random()));
  return [length * Math.cos(angle), length * Math.sin(angle)];
}

const METHODS = {
  stream: { name: (e) => `Stream: ε = ${e} for ever`, guess: ({ nights }) => central(nights) },
  split: { name: (e) => `ε split: ${e}/${town.nights} a night`, guess: ({ nights }) => central(nights) },
  fixed: {
    name: () => "Fixed offset",
    guess: ({ all, homes }) =>
      homes.length > 1 ? all.at(-1).map((one, k) => one - (all[0][k] - homes[0][k])) : all.at(-1),
  },
  fresh: { name: () => "Fresh noise every night", guess: ({ nights }) => mean(nights) },
};

let life;
const maps = new Map();

/** A new life: nothing is published yet. `all` are all nights of a method, `nights` those since the last move. */
function begin(home) {
  const { stream, split } = life;
  life = { stream, split, home, homes: [home], night: 0, shift: offset(), state: stream.start(), told: {} };
  for (const name of Object.keys(METHODS)) life.told[name] = { all: [], nights: [] };
}

function passNight() {
  const cell = cellOf(life.home);
  const { category, state } = life.stream.release([cell], life.state);
  life.state = state;
  const noise = offset();
  const published = {
    stream: middle(category),
    split: middle(life.split.release([cell])),
    fixed: life.home.map((one, k) => one + life.shift[k]),
    fresh: life.home.map((one, k) => one + noise[k]),
  };
  for (const [name, place] of Object.entries(published)) {
    life.told[name].all.push(place);
    life.told[name].nights.push(place);
  }
  life.night++;
}

function makeMap(name) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const svg = draw("svg", { viewBox: `0 0 ${town.width} ${town.width}`, tabindex: 0, role: "img" });
  const most = Math.max(...town.density);
  town.density.forEach((share, cell) => {
    const [east, north] = middle(cell);
    svg.append(draw("rect", {
      x: east - town.cell / 2, y: town.width - north - town.cell / 2, width: town.cell, height: town.cell,
      fill: `rgba(var(--shade), ${(0.03 + 0.35 * Math.sqrt(share / most)).toFixed(3)})`,
    }));
  });
  const layer = draw("g", {});
  svg.append(layer);
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const place = [((event.clientX - box.left) / box.width) * town.width, (1 - (event.clientY - box.top) / box.height) * town.width];
    if (life.night) moveTo(place);
    else begin(place);
    show();
  });
  const words = document.createElement("p");
  figure.append(caption, svg, words);
  element("maps").append(figure);
  maps.set(name, { caption, svg, layer, words });
}

const point = ([east, north]) => [east, town.width - north];

function showMap(name) {
  const { caption, svg, layer, words } = maps.get(name);
  const { nights, all } = life.told[name];
  caption.textContent = METHODS[name].name(element("epsilon").value);
  const shapes = all.slice(-town.nights).map((place, k, list) => {
    const [cx, cy] = point(place);
    return draw("circle", { class: "told", cx, cy, r: 0.38, opacity: (0.12 + 0.88 * ((k + 1) / list.length) ** 4).toFixed(2) });
  });
  const [x, y] = point(life.home);
  shapes.push(draw("circle", { class: "home", cx: x, cy: y, r: 0.75 }));
  let text = "no night has passed";
  if (nights.length) {
    const guess = METHODS[name].guess({ nights, all, homes: life.homes });
    const [gx, gy] = point(guess);
    shapes.push(draw("path", { class: "guess", d: `M${gx - 0.7} ${gy - 0.7}l1.4 1.4m0 -1.4l-1.4 1.4` }));
    text = `tonight ${apart(nights.at(-1), life.home).toFixed(1)} km from home; after ${nights.length} nights the attacker's guess is ${apart(guess, life.home).toFixed(1)} km off`;
  }
  layer.replaceChildren(...shapes);
  words.textContent = text;
  svg.setAttribute("aria-label", `${caption.textContent}: ${text}`);
}

function show() {
  Object.keys(METHODS).forEach(showMap);
  const left = Math.round(100 * life.stream.room(life.state));
  element("status").textContent = life.night
    ? `Night ${life.night}. ${left} % of the stream's budget is left for changes.`
    : "Click on a map to choose another home, or let a night pass.";
}

function moveTo(home) {
  life.home = home;
  life.homes.push(home);
  for (const name of Object.keys(METHODS)) life.told[name].nights = [];
}

/** A home drawn from the density. */
function somebody() {
  let left = Math.random();
  let cell = 0;
  while (cell < town.density.length - 1 && (left -= town.density[cell]) > 0) cell++;
  return middle(cell).map((one) => one + (Math.random() - 0.5) * town.cell);
}

async function choose(epsilon) {
  const checked = (loader, name) => {
    const file = town[`${name} ${epsilon}`];
    const policy = { maxEpsilon: Number(epsilon), maxCategories: town.density.length, digest: file.digest };
    return loader(new TextEncoder().encode(JSON.stringify(file)), policy);
  };
  life = { stream: await checked(loadStream, "stream"), split: await checked(load, "split") };
  begin(somebody());
  show();
}

Object.keys(METHODS).forEach(makeMap);
await choose(element("epsilon").value);
element("epsilon").addEventListener("change", () => choose(element("epsilon").value));
element("night").addEventListener("click", () => (passNight(), show()));
element("month").addEventListener("click", () => {
  for (let k = 0; k < 30; k++) passNight();
  show();
});
element("move").addEventListener("click", () => (moveTo(somebody()), show()));
element("again").addEventListener("click", () => (begin(somebody()), show()));
for (const button of document.querySelectorAll("button")) button.disabled = false;
