import type { Expression } from "./regex-syntax.ts";

/** What makes PostgreSQL's machine for an expression large, with repetitions counted out. */
interface Size {
  characters: number;
  /** Parts that may be left out: the time to build the machine grows with their cube. */
  gaps: number;
  assertions: number;
}

const most: Size = { characters: 1000, gaps: 64, assertions: 32 };
const productMax = 10_000;

/**
 * Whether PostgreSQL might need long for an expression, or give it up. The bounds
 * are measured: design/entities.
 */
export function isTooComplex(expression: Expression): boolean {
  const { characters, gaps, assertions } = sizeOf(expression);
  return (
    characters > most.characters ||
    gaps > most.gaps ||
    assertions > most.assertions ||
    characters * (gaps + 1) > productMax
  );
}

function sizeOf(expression: Expression): Size {
  switch (expression.kind) {
    case "set":
      return { characters: 1, gaps: 0, assertions: 0 };
    case "assertion":
      return { characters: 1, gaps: 0, assertions: 1 };
    case "sequence":
      return sum(expression.parts.map(sizeOf));
    case "choice": {
      const sizes = expression.options.map(sizeOf);
      const empty = sizes.filter(({ characters }) => characters === 0).length;
      return sum([...sizes, { characters: sizes.length, gaps: empty, assertions: 0 }]);
    }
    case "repeat": {
      const { part, min, max } = expression;
      const { characters, gaps, assertions } = sizeOf(part);
      const times = Math.max(1, max ?? min);
      return {
        characters: Math.max(1, characters) * times,
        gaps: gaps * times + (min === 0 ? 1 : 0),
        assertions: assertions * times,
      };
    }
  }
}

function sum(sizes: readonly Size[]): Size {
  const total = { characters: 0, gaps: 0, assertions: 0 };
  for (const { characters, gaps, assertions } of sizes) {
    total.characters += characters;
    total.gaps += gaps;
    total.assertions += assertions;
  }
  return total;
}
