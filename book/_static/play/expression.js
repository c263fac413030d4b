/* Index expressions: C's 32-bit integers over the lanes of one warp. The twin of climb/display/index_expression.py,
 * and compared with it by tests: same values, same messages. */
globalThis.RLPlay = globalThis.RLPlay || {};
(function (P) {
  "use strict";
  const WARP = 32, LONGEST = 200;
  const TOKEN = /\s*(?:(\d[A-Za-z0-9_.]*)|([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>()?:,])|($)|([^]))/y;
  const KINDS = ["", "number", "name", "operator", "end", "other"];
  const LEVELS = ["||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %"].map((l) => l.split(" "));
  const INT_RESULT = "|| && == != < <= > >=".split(" ");
  const UNSIGNED = { "lane": false, "threadIdx.x": true, "threadIdx.y": true, "blockDim.x": true, "warpSize": false };
  const has = (name) => Object.prototype.hasOwnProperty.call(UNSIGNED, name);

  class ExpressionError extends Error {
    constructor(what, position) {
      super(`${what}, at character ${position + 1}`);
      this.position = position;
    }
  }
  const fail = (what, position) => { throw new ExpressionError(what, position); };
  const show = (token) => (token.text ? `'${token.text}'` : "the end");

  function tokens(text) {
    const found = [];
    TOKEN.lastIndex = 0;
    for (;;) {
      const match = TOKEN.exec(text);
      const kind = [1, 2, 3, 4, 5].find((i) => match[i] !== undefined);
      const token = { kind: KINDS[kind], text: match[kind], position: match.index + match[0].length - match[kind].length };
      if (token.kind === "other") fail(`'${token.text}' has no place in an index`, token.position);
      found.push(token);
      if (token.kind === "end") return found;
    }
  }

  function number(token) {
    const match = /^(0[xX][0-9a-fA-F]+|\d+)([uU]?)$/.exec(token.text);
    if (!match) fail(`'${token.text}' is not a whole number`, token.position);
    const hex = /^0x/i.test(match[1]);
    if (!hex && /^0\d/.test(match[1])) fail(`'${token.text}' is octal in C; leave out the leading zero`, token.position);
    const value = Number(match[1]), unsigned = match[2] !== "" || (hex && value >= 2 ** 31);
    if (value >= 2 ** (unsigned ? 32 : 31)) fail(`'${token.text}' does not fit into 32 bits`, token.position);
    return { op: "number", parts: [], position: token.position, unsigned, value };
  }

  function parse(text) {
    if (text.length > LONGEST) fail(`the expression is longer than ${LONGEST} characters`, LONGEST);
    const all = tokens(text);
    let at = 0;
    const expect = (wanted, why) => {
      if (all[at].text !== wanted) fail(`expected '${wanted}' ${why}, found ${show(all[at])}`, all[at].position);
      at += 1;
    };
    const node = (op, parts, mark, unsigned) => ({ op, parts, position: mark.position, unsigned });
    const choice = () => {
      const condition = binary(0);
      if (all[at].text !== "?") return condition;
      const mark = all[at++], yes = choice();
      expect(":", `for the '?' at character ${mark.position + 1}`);
      const no = choice();
      return node("?", [condition, yes, no], mark, yes.unsigned || no.unsigned);
    };
    const binary = (level) => {
      if (level === LEVELS.length) return unary();
      let left = binary(level + 1);
      while (LEVELS[level].includes(all[at].text)) {
        const mark = all[at++], right = binary(level + 1);
        const unsigned = left.unsigned || (right.unsigned && mark.text !== "<<" && mark.text !== ">>");
        left = node(mark.text, [left, right], mark, unsigned && !INT_RESULT.includes(mark.text));
      }
      return left;
    };
    const unary = () => {
      const mark = all[at++];
      if (mark.text && "-+~!".includes(mark.text)) {
        const part = unary();
        return node("unary " + mark.text, [part], mark, part.unsigned && mark.text !== "!");
      }
      if (mark.text === "(") {
        const inside = choice();
        expect(")", `for the '(' at character ${mark.position + 1}`);
        return inside;
      }
      if (mark.kind === "number") return number(mark);
      if (has(mark.text)) return Object.assign(node("name", [], mark, UNSIGNED[mark.text]), { value: mark.text });
      if (mark.text === "min" || mark.text === "max") {
        expect("(", `after ${mark.text}`);
        const first = choice();
        expect(",", `between the two values of ${mark.text}`);
        const second = choice();
        expect(")", `after the two values of ${mark.text}`);
        return node(mark.text, [first, second], mark, first.unsigned || second.unsigned);
      }
      if (mark.kind === "name") fail(`there is no '${mark.text}'; there are ${Object.keys(UNSIGNED).join(", ")}, min, max`, mark.position);
      return fail(`expected a value, found ${show(mark)}`, mark.position);
    };
    if (all[0].kind === "end") fail("the expression is empty", 0);
    const tree = choice();
    if (all[at].kind !== "end") fail(`expected an operator, found ${show(all[at])}`, all[at].position);
    return tree;
  }

  const as = (unsigned, value) => (unsigned ? value - Math.floor(value / 2 ** 32) * 2 ** 32 : value);
  const BINARY = {
    "+": (a, b) => a + b, "-": (a, b) => a - b, "&": (a, b) => a & b, "|": (a, b) => a | b, "^": (a, b) => a ^ b,
    "==": (a, b) => +(a === b), "!=": (a, b) => +(a !== b), "<": (a, b) => +(a < b), "<=": (a, b) => +(a <= b),
    ">": (a, b) => +(a > b), ">=": (a, b) => +(a >= b), min: Math.min, max: Math.max,
  };

  function evaluate(node, variables) {
    const { op, parts } = node;
    const undefinedInC = (what) => fail(`lane ${variables.lane} ${what}`, node.position);
    const fit = (value) => {
      if (!node.unsigned && !(value >= -(2 ** 31) && value < 2 ** 31)) undefinedInC("overflows a 32-bit int");
      return as(node.unsigned, value) + 0;  // + 0: no negative zero
    };
    if (op === "number") return node.value;
    if (op === "name") return variables[node.value];
    let a = evaluate(parts[0], variables);
    if (op === "?") return as(node.unsigned, evaluate(parts[a ? 1 : 2], variables));
    if (op === "&&") return +(a !== 0 && evaluate(parts[1], variables) !== 0);
    if (op === "||") return +(a !== 0 || evaluate(parts[1], variables) !== 0);
    if (parts.length === 1) return fit({ "unary -": -a, "unary +": a, "unary ~": ~a, "unary !": +(a === 0) }[op]);
    let b = evaluate(parts[1], variables);
    if (op === "<<" || op === ">>") {
      if (!(b >= 0 && b < 32)) undefinedInC(`shifts by ${b}, and C allows 0 to 31`);
      return fit(op === "<<" ? a * 2 ** b : Math.floor(a / 2 ** b));
    }
    const unsigned = parts[0].unsigned || parts[1].unsigned;
    a = as(unsigned, a);
    b = as(unsigned, b);
    if (op === "/" || op === "%") {
      if (b === 0) undefinedInC("divides by zero");
      const quotient = Math.trunc(a / b);
      fit(quotient);
      return (op === "/" ? quotient : a % b) + 0;
    }
    if (op === "*") return unsigned ? Math.imul(a, b) >>> 0 : fit(a * b);
    return fit(BINARY[op](a, b));
  }

  /* The value in each of 32 lanes of the first warp of a block that is `block` threads wide; 0 in lanes that are not
   * `active`, which do not evaluate it. Throws ExpressionError. */
  P.lanes = (text, block = WARP, active = null) => {
    const tree = parse(text);
    return Array.from({ length: WARP }, (_, lane) => (active && !active[lane] ? 0 : evaluate(tree, {
      "lane": lane, "threadIdx.x": lane % block, "threadIdx.y": Math.floor(lane / block), "blockDim.x": block, "warpSize": WARP,
    })));
  };
  P.WARP = WARP;
  P.ExpressionError = ExpressionError;
})(globalThis.RLPlay);
