/** What both pages are made of: numbers as text, rows with marks on a track, keys and cards. */

export const whole = new Intl.NumberFormat("en");
/** A share as a percentage with one digit, two where it is small. */
export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.00995 ? 2 : 1)} %`;
/** A distance. */
export const three = (x) => (x === null || x === undefined ? "–" : x.toFixed(3));

/** Bounds, rounded so that they hold. */
export const upper = (x) => (Math.ceil(1000 * x - 1e-9) / 1000).toFixed(3);
export const lower = (x) => (Math.floor(1000 * x + 1e-9) / 1000).toFixed(3);

const at = (x) => `${Math.min(Math.max(100 * x, 0), 100)}%`;

/**
 * A row of a chart. Marks are { kind, from, to }: a mark with `to` is an interval, one without is a position; `scale` brings
 * both between 0 and 1. `label` is what a screen reader reads.
 */
export function Row({ name, label, value, marks, scale, children }) {
  return (
    <div class={children ? "row edit" : "row"}>
      <div class="name" title={name}>{name}</div>
      <div class="track" role="img" aria-label={`${name}: ${label}`}>
        {marks.map(({ kind, from, to }) => (
          <i key={kind} class={kind} style={{ left: at(scale(from)), width: to === undefined ? undefined : at(scale(to) - scale(from)) }} />
        ))}
      </div>
      {children ?? <div class="value">{value}</div>}
    </div>
  );
}

/** What the marks of a chart mean: { kind: text }. */
export const Key = ({ marks }) => (
  <ul class="key">
    {Object.entries(marks).map(([kind, text]) => <li key={kind}><span><i class={kind} /></span>{text}</li>)}
  </ul>
);

/** A part of the page with its heading. */
export const Card = ({ title, wide, tall, children }) => (
  <section class={`card${wide ? " wide" : ""}${tall ? " tall" : ""}`} aria-label={title}>
    <h2>{title}</h2>
    {children}
  </section>
);

/** A table of texts; the row at `best` is marked. */
export const Table = ({ head, rows, best = -1, caption }) => (
  <div class="scroll" role="region" aria-label={caption} tabindex={0}>
    <table>
      <caption class="hidden">{caption}</caption>
      <thead><tr>{head.map((text) => <th key={text} scope="col">{text}</th>)}</tr></thead>
      <tbody>
        {rows.map((cells, i) => (
          <tr key={cells[0]} class={i === best ? "best" : undefined}>
            {cells.map((text, j) => (j ? <td key={j}>{text}</td> : <th key={j} scope="row">{text}</th>))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
