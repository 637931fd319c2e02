import ts from "typescript";
import type { Tree } from "./tree.ts";

/** What an error says, as it is in the code; `…` is what varies. */
export interface ErrorText {
  place: string;
  text: string;
}

/** What makes an error, or a result that is one, and which of its arguments is what people read. */
const makers: Readonly<Record<string, number>> = {
  ConnectError: 0,
  aboutResource: 0,
  alreadyExists: 0,
  deadlineExceeded: 0,
  errorBody: 1,
  errorJson: 1,
  exhausted: 0,
  failedPrecondition: 0,
  inUse: 0,
  invalidField: 1,
  invalidValue: 1,
  notFound: 0,
  notOneMessage: 0,
  notSent: 2,
  OutboundError: 1,
  permissionDenied: 0,
  refusalOf: 2,
  unauthenticated: 0,
  unavailable: 0,
  unsupportedType: 0,
  unsupported: 0,
};
/** `fail` of the readers of JSON and of queries takes a place first, that of expressions does not. */
const failing: Readonly<Record<string, number>> = { "src/transcoding/": 1, "src/clause/regex-syntax.ts": 0 };
/** Properties that hold what is wrong. */
const members = ["rule", "error", "reason"];

/** No request comes here: start, command line, settings, files, bytes that are stored, deaths. Their messages go to the operator. */
const unasked =
  /^src\/(?!errors|limiter)[^/]+$|^src\/(?:config|cli\/|processes\/|embedded\/|backup\/|db\/(?:connect|migrate|distribute)|metrics\/codec|credentials\/(?:key-file|rotate)|http\/(?:address|pages)|rpc\/requests-in-work)/;

/** What reads on after the path of a field, wherever it stands. */
const rule = /^(?:must|cannot) \S|^is (?:required|needed)\b/;
/** A literal that is handed back as what is wrong with a value. */
const sentence = /^[a-z…"\\]\S* \S+ \S|^(?:must|is|has|cannot|lies|needs) \S/;

/** Every text of an error that the code can answer, and the places where an argument says it that is no literal. */
export function errorTexts(tree: Tree): { texts: ErrorText[]; carried: string[] } {
  const texts: ErrorText[] = [];
  const carried: string[] = [];
  for (const [path, content] of tree) {
    if (!/^src\/.*\.ts$/.test(path) || unasked.test(path)) continue;
    const file = ts.createSourceFile(path, content, ts.ScriptTarget.Latest, true);
    const found = new Map<ts.Node, string>();
    const take = (node: ts.Expression | undefined) => {
      if (node === undefined) return;
      const said = textsOf(node);
      for (const [literal, text] of said) found.set(literal, text);
      if (said.length === 0) carried.push(`${path}: ${node.getText(file).replaceAll(/\s+/g, " ").slice(0, 60)}`);
    };
    const visit = (node: ts.Node) => {
      if (ts.isCallExpression(node) || ts.isNewExpression(node)) take(node.arguments?.[argumentOf(node, path)]);
      else if (ts.isPropertyAssignment(node) && members.includes(node.name.getText(file))) {
        for (const [literal, text] of textsOf(node.initializer)) found.set(literal, text);
      } else if (isText(node) && (rule.test(textOf(node)) || (handedBack(node) && sentence.test(textOf(node))))) {
        found.set(node, textOf(node));
      }
      node.forEachChild(visit);
    };
    visit(file);
    for (const [node, text] of found) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
      if (text !== "") texts.push({ place: `${path}:${line + 1}`, text });
    }
  }
  return { texts, carried: [...new Set(carried)] };
}

type Text = ts.StringLiteralLike | ts.TemplateExpression;
const isText = (node: ts.Node): node is Text => ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);

function textOf(node: Text): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  return (node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("")).replaceAll(/…+/g, "…");
}

/** The texts that an expression may be. */
function textsOf(node: ts.Expression): [ts.Node, string][] {
  if (isText(node)) return [[node, textOf(node)]];
  if (ts.isParenthesizedExpression(node)) return textsOf(node.expression);
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const [left, right] = [node.left, node.right].map((part) => textsOf(part)[0]?.[1] ?? "…");
    return [[node, `${left}${right}`]];
  }
  return [];
}

function argumentOf({ expression }: ts.CallExpression | ts.NewExpression, path: string): number {
  if (!ts.isIdentifier(expression)) return -1;
  if (expression.text === "fail") {
    const where = Object.keys(failing).find((start) => path.startsWith(start));
    return where === undefined ? -1 : (failing[where] ?? -1);
  }
  if (!Object.hasOwn(makers, expression.text)) return -1;
  return makers[expression.text] as number;
}

/** Whether a literal is what a function answers, or a constant of this kind. */
function handedBack(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isConditionalExpression(parent) || ts.isParenthesizedExpression(parent)) return handedBack(parent);
  if (ts.isBinaryExpression(parent)) {
    return parent.operatorToken.kind !== ts.SyntaxKind.PlusToken && handedBack(parent);
  }
  const answered = ts.isReturnStatement(parent) || ts.isArrowFunction(parent);
  return answered || ts.isVariableDeclaration(parent) || ts.isArrayLiteralExpression(parent);
}
