/** What is refused: `reason` is a word of docs/format.md; no message ever holds a user's data. */
export class Refused extends Error {
  constructor(reason, message) {
    super(reason + ": " + message);
    this.name = "Refused";
    this.reason = reason;
  }
}

/** Refuse unless the condition holds. */
export const need = (condition, reason, message) => {
  if (!condition) throw new Refused(reason, message);
};
