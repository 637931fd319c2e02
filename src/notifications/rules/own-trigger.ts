/** The name under which a rule's own condition stands among the triggers: none that a trigger may have. */
export const ownTrigger = (rule: string) => `\0${rule}`;
