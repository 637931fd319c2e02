const words: Readonly<Record<string, string>> = {
  1000: "Production",
  500: "Pre-production",
  400: "Test",
  300: "Maintenance",
  "-1": "Decommissioned",
};

/** A production state as people call it. */
export const stateText = (state: bigint) => words[String(state)] ?? `State ${state}`;
