// Names that nobody else has.

/** A name of 24 letters and digits, other than any that was made anywhere. */
export const uniqueName = (): string =>
  Array.from({ length: 4 }, () => Math.random().toString(36).slice(2, 8).padEnd(6, "0")).join("");
