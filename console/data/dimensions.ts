/** The dimensions of an entity in one line. */
export const dimensionsText = (dimensions: Readonly<Record<string, string>>) =>
  Object.entries(dimensions)
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");
