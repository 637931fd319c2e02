/** Names why a rule does not notify of a subject now. The stage that stops it returns one; explanations have a text for each. */
export type Reason =
  // Of the rule itself.
  | "disabled"
  | "noDestination"
  // Of a trigger: the occurrence is closed and its clause does not name the status, or a part of the clause is false.
  | "statusNotNamed"
  | "false"
  // Of the rules that led to the occurrence.
  | "ownEvent"
  | "chainTooLong"
  // Of a repetition.
  | "noRepetition"
  | "closed"
  | "acknowledged"
  | "tooEarly"
  | "unreported";
