"""What the compiler's messages mean in practice: rules with one sentence of advice each, as data.

A rule fires on a message that the compiler really gave; `Rule.near` asks in addition for a construct that the versions
in `Rule.majors` never accept where the message is, so that the advice holds whatever else is wrong in that line.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """`advice` may name groups of the patterns: ``<name>`` is what ``name`` or ``name_`` matched."""

    name: str
    says: re.Pattern[str]
    """What the compiler says."""
    advice: str
    near: re.Pattern[str] | None = None
    """What must also stand in the line that the message names, or in the line before it."""
    also: re.Pattern[str] | None = None
    """What another message on the same line must say."""
    majors: range = range(100)
    """Versions of the simulator that the advice is for."""


def _rule(
    name: str, says: str, advice: str, near: str = "", *, also: str = "", since: int = 0, until: int = 99
) -> Rule:
    place, other = (re.compile(pattern) if pattern else None for pattern in (near, also))
    return Rule(name, re.compile(says), advice, place, other, range(since, until + 1))


SYNTAX = r"(?i)^(?:syntax|malformed|invalid module|errors? in|incomprehensible)"
_UNBOUND = r"(?:Unable to bind (?:wire/reg/memory|parameter) `|Could not find variable ``|^Net )(?P<name>\w+)"

_NO_ASSERTIONS = "Icarus has no properties, sequences, concurrent or deferred assertions: remove them, none is needed."

RULES: tuple[Rule, ...] = (
    # --- another language
    _rule("vhdl", SYNTAX, "This is VHDL (`<word>`): write Verilog, e.g. `always @(posedge clk) if (...) ... else ...`.",
          r"(?i)\b(?P<word>library\s+ieee|use\s+ieee|entity\s+\w+\s+is|architecture\s+\w+\s+of|rising_edge"
          r"|process(?=\s*\([\w, ]*\)\s*$)|end\s+(?:if|process|case)(?=\s*;))|\bif\b[^;]*[\w)]\s+(?P<word_>then)\b"),
    _rule("else_if", SYNTAX, "Write `else if` instead of `<word>`.", r"\b(?P<word>elsif|elif|elseif)\s*[\w(]"),
    _rule("word_operator", SYNTAX, "Expressions use & | ^ ~ (bits) or && || ! (truth), not the word `<word>`.",
          r"(?:\bassign\b[^=;]*|<)=[^;@:]*[\w)\]}]\s+(?P<word>and|or|xor|nand|nor|xnor)\b"),
    _rule("single_equals", r"Malformed conditional expression", "Compare with `==`: a single `=` is an assignment.",
          r"\bif\s*\(\s*[\w.]+\s*(?:\[[^\]]*\]\s*)?=[^=]"),
    # --- constructs that a version does not have
    _rule("inside", r'"inside" expressions not supported', "Icarus has no `inside`: compare instead, e.g. "
          "`(x == 1 || x == 2)` or `(x >= 1 && x <= 3)`."),
    _rule("case_inside", SYNTAX, "Icarus has no `case ... inside`: use `casez` with `?` bits, or if/else comparisons.",
          r"\bcase[xz]?\s*\(.*\)\s*inside\b"),
    _rule("streaming", r"(?i)streaming concatenation not supported|^syntax", "Icarus has no streaming operators: "
          "reverse bits in a loop, e.g. `for (i = 0; i < 8; i = i + 1) q[i] = d[7 - i];`.", r"\{\s*(?:<<|>>)"),
    _rule("named_pattern", SYNTAX, "Icarus has no `'{name: value}` or `'{n{...}}`: use '0 or {a, b} for a vector or "
          "struct, a for loop for an array.", r"'\{\s*(?:\w+\s*:|\w+\s*\{)"),
    _rule("array_parameter", r"(?i)^syntax|must have a value|unpacked array parameters are not", "Parameters cannot be "
          "arrays here: use a function with a case statement, or an array filled in `initial`.",
          r"\b(?:localparam|parameter)\b[^=;]*\[[^=;\]]*\]\s*="),
    _rule("pattern", r"I do not know how to elaborate assignment patterns", "Use a concatenation {a, b} instead of the "
          "pattern '{a, b}.", until=12),
    _rule("struct_array", r"Cannot assign to array|Assignment to an entire array|cannot be implicitly cast", "A member "
          "of a struct in an array cannot be assigned alone: assign the whole element, s[i] = {a, b}.",
          r"\w\s*\[[^\];]*\]\s*\.\s*\w+\s*<?=(?!=)"),
    _rule("whole_array", r"Cannot assign to array|Assignment to an entire array|context type=\S*netuarray",
          "An array cannot be assigned as a whole here: assign its elements in a for loop."),
    _rule("let", r"let declarations|^syntax|nvalid module item", "Icarus has no `let`: use a function.",
          r"^\s*let\s+\w+\s*[(=]"),
    _rule("assertion", r"concurrent_assertion_item|property_spec|Deferred assertions", _NO_ASSERTIONS),
    _rule("property", SYNTAX, _NO_ASSERTIONS,
          r"\b(?:assert|assume|cover|restrict)\s+property\b|^\s*(?:end)?(?:property|sequence)\b"),
    _rule("unique_if", SYNTAX, "Icarus takes no `<word>` before `if`: remove the word.",
          r"\b(?P<word>unique0?|priority)\s+if\b"),
    _rule("cast_signed", SYNTAX, "Icarus 11 has no `<word>'(x)`: write `$<word>(x)`.",
          r"\b(?P<word>signed|unsigned)\s*'\s*\(", until=11),
    _rule("cast_void", SYNTAX, "Icarus 11 has no `void'(f(x))`: assign the result to a variable.", r"\bvoid\s*'\s*\(",
          until=11),
    _rule("cast_enum", r"This cast operation is not yet supported", "Icarus 11 cannot cast to an enum: declare the "
          "variable as `logic [1:0]` (or wider) with localparam constants.", until=11),
    _rule("enum_11", r"This assignment requires an explicit cast", "An enum variable only takes members of its enum: "
          "use if/else instead of `?:`, or declare it as `logic [1:0]` with localparams.", until=11),
    _rule("enum", r"This assignment requires an explicit cast", "An enum variable only takes members of its enum: cast "
          "the value, `state_t'(x)`, or declare the variable as `logic`.", since=12),
    _rule("parameter_type", SYNTAX, "Icarus 11 has no `parameter type`: write the type out, or use a parameter for "
          "its width.", r"\b(?:parameter|localparam)\s+type\b", until=11),
    _rule("parameter_string", SYNTAX, "Icarus 11 has no `parameter string`: leave out the word `string`.",
          r"\b(?:parameter|localparam)\s+string\b", until=11),
    _rule("const", SYNTAX, "Use `localparam` for a constant: `const` needs Icarus 13.", r"^\s*const\b", until=12),
    _rule("var", SYNTAX, "Leave out the word `var`: Icarus 11 does not have it.", r"\bvar\s+\w", until=11),
    _rule("break", r"break statements not supported", "`break` needs Icarus 13: guard the loop's body with a flag, "
          "`if (!done) begin ... done = 1; end`.", until=12),
    _rule("continue", SYNTAX, "`continue` needs Icarus 13: put the rest of the loop's body into an `if`.",
          r"\bcontinue\s*;", until=12),
    _rule("return_in_task", r'Cannot "return" from tasks', "A task cannot `return` before Icarus 13: use if/else "
          "around the rest, or a function.", until=12),
    _rule("void_function", r"NetScope::task_def", "Icarus 11 crashes on a void function: make it a task.", until=11),
    _rule("unpacked_struct", r"Unpacked structs not supported", "Write `struct packed`: unpacked structs are not "
          "supported."),
    _rule("loop_variables", r"Incomprehensible for loop", "A for loop has one loop variable and one step.",
          r"\bfor\s*\([^;]*,"),
    _rule("loop_generate", SYNTAX, "Outside of an always block a for loop is a generate loop: write "
          "`for (genvar i = 0; ...)`.", r"\bgenerate\s+for\s*\(\s*(?:int|integer|reg|logic)\b"),
    _rule("genvar", r'genvar is missing for generate "loop" variable \'(?P<name>\w+)\'', "Write `for (genvar <name> = "
          "0; ...)`, or move the loop into an always block."),
    _rule("variable_slice", r"Part select expressions must be constant", "Both bounds of [a:b] must be constant: for "
          "a moving slice write `x[start +: WIDTH]`.", also=r"is not allowed in a constant expression"),
    _rule("variable_index", r"Array index expressions must be constant here", "A packed [a][b] takes a variable only "
          "as the last index: make it an array, `reg [7:0] m [0:3]`.", also=r"is not allowed in a constant expression"),
    _rule("slice_of_expression", SYNTAX, "A slice needs a name before it: put the expression into a wire first.",
          r"\)\s*\[", ),
    # --- processes
    _rule("always_at", SYNTAX, "Write `always @(posedge clk)`: with @ and parentheses.",
          r"\balways(?:_ff)?\s*(?:\(|@\s*(?:pos|neg)edge)"),
    _rule("always_ff_event", r"first statement of an always_ff process", "always_ff needs an event: `always_ff "
          "@(posedge clk)`."),
    _rule("always_comb_event", r"an event control is not allowed in an always_comb", "Write `always_comb` without "
          "@(...), or `always @(*)`."),
    _rule("always_forever", r"always process does not have any delay", "`always` alone never waits: write `always "
          "@(*)` or `always @(posedge clk)`."),
    _rule("instance_in_process", r"(?i)^malformed statement", "A module cannot be instantiated inside an always block: "
          "move the instance out of it.", r"(?:^|;|\bbegin\b|\))\s*(?!else\b|begin\b|end\b|return\b)[A-Za-z_]\w*\s+"
          r"[A-Za-z_]\w*\s*\(\s*\.\s*\w+\s*\("),
    _rule("assign_nonblocking", r"continuous assignment", "`assign` takes `=`, not `<=`.", r"\bassign\b[^=;]*<="),
    # --- declarations and drivers
    _rule("net_in_process", r"^'?(?P<name>\w+)(?:[\[.][^ ]*)?'? is not a valid l-value.*declared here as (?:a )?wire",
          "`<name>` is a net: declare it as reg or logic (`output reg` for an output), or drive it with `assign`; an "
          "input cannot be assigned."),
    _rule("driven_twice", r"^(?:(?P<name>\w+)(?:\[[^ ]*)? Unable to assign to unresolved|Cannot perform procedural "
          r"assignment to variable '(?P<name_>\w+)')", "`<name>` is driven by an always block and by something else: "
          "keep one."),
    _rule("two_drivers", r"^(?:Unresolved net/uwire|Variable) '?(?P<name>\w+)(?:\[[^ ]*)?'? cannot have multiple",
          "`<name>` has two drivers: keep one."),
    _rule("input_reg", r"Port (?P<name>\w+) of module \S+ is declared as input and as a reg", "An input cannot be a "
          "reg: write `input <name>`."),
    _rule("use_before", _UNBOUND + r".*A symbol with that name was declared here", "Move the declaration of `<name>` "
          "above its first use.", since=13),
    _rule("declared_twice", r"^'(?P<name>\w+)' has already been declared in this scope\.(?! It was .* as a module)",
          "`<name>` is declared twice: keep one declaration, for a port the one in the port list."),
    _rule("no_direction", r"^Port (?P<name>\w+) .*has no direction", "Declare the direction of `<name>`, e.g. `output "
          "<name>;`."),
    _rule("port_semicolon", r"';' is an invalid port declaration", "In a port list put `,` between the ports."),
    _rule("missing_comma", SYNTAX, "A comma is missing between two ports.",
          r"\b(?:input|output|inout)\b[^,;()]*\w\s+(?:input|output|inout)\b"),
    _rule("end_word", SYNTAX, "`end<word>` is one word.", r"\bend\s+(?P<word>module\b|(?:function|task)(?=\s*$))"),
    _rule("port_comma", r"Superfluous comma in port", "Remove the comma before the `)` of the port list."),
    _rule("scalar", r"can not select part of scalar: (?P<name>\w+)", "`<name>` has one bit: declare it with a range, "
          "`[7:0] <name>`, or leave out the index."),
    _rule("array_index", r"Array (?P<name>\w+) needs an array index", "`<name>` is an array: take an element, "
          "`<name>[i]`."),
    _rule("unsized", r"Concatenation operand .* has indefinite width", "In a concatenation every number needs a width: "
          "write 1'b1, not 1."),
    _rule("bad_number", SYNTAX, "A binary number has only the digits 0, 1, x and z: use 'd or 'h.",
          r"'[sS]?[bB]\s*[01xXzZ_?]*[2-9]"),
    _rule("backtick", r"^macro [sS]?[bodhBODH]\w* undefined", "A number takes an apostrophe, not a backtick: 1'b0.",
          r"\d\s*`[sS]?[bodhBODH]"),
    _rule("macro", r"^macro (?P<name>\w+) undefined", "`<name> is not defined: use a parameter without the backtick, "
          "or add a `define."),
)  # fmt: skip

_WORDS = """
    alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bit
    break buf bufif0 bufif1 byte case casex casez cell chandle class clocking cmos config const constraint
    context continue cover cross deassign default defparam design disable dist do edge else end endcase
    endfunction endgenerate endmodule endtask enum event expect export extends extern final for force foreach
    forever fork function generate genvar global if iff import include initial inout input inside int integer
    interface intersect join let library local localparam logic longint macromodule matches modport module nand
    negedge new nmos nor not notif0 notif1 null or output package packed parameter pmos posedge primitive
    priority program property protected pull0 pull1 pulldown pullup pure rand ref reg real realtime release
    repeat return sequence shortint shortreal signed small solve specify specparam static string strong0 strong1
    struct super supply0 supply1 table tagged task this throughout time tran tri tri0 tri1 triand trior type
    typedef union unique unique0 unsigned use uwire var vectored virtual void wait wand weak0 weak1 while
    wildcard wire with within wor xnor xor
"""
KEYWORDS = frozenset(_WORDS.split())
_TYPES = """
    bit byte enum inout input int integer interface local logic longint output packed real ref reg shortint
    signed struct time tri type union unsigned uwire var wire
"""
TYPE_WORDS = frozenset(_TYPES.split())
"""Keywords that a range may follow in a declaration."""

MEANT = {**dict.fromkeys("‘’′´", "'"), **dict.fromkeys("“”„″", '"'), **dict.fromkeys("–—−", "-"), "≤": "<=", "≥": ">="}  # noqa: RUF001
"""What was meant by characters that only look like Verilog."""
PAIRS = (("begin", "end"), ("case", "endcase"), ("function", "endfunction"), ("task", "endtask"),
          ("generate", "endgenerate"), ("module", "endmodule"), ("(", ")"), ("[", "]"), ("{", "}"))  # fmt: skip
STATEMENT = re.compile(r"\s*(?:if\s*\(.*\)\s*|else\s+)?[A-Za-z_][\w.]*(?:\s*\[[^\]]*\])*\s*<?=(?!=)")
"""A line that starts with an assignment."""
UNFINISHED = re.compile(
    r"\s*(?:assign|wire|reg|logic|integer|genvar|localparam|parameter|input|output|inout)\s.*"
    r"|(?:.*(?:\bbegin|\belse|[:)]))?\s*(?!(?:if|for|case|module)\b)[A-Za-z_][\w.]*(?:\[[^\]]*\])*\s*<?=(?!=).*"
    r"|\s*module\s.*\)\s*|\s*[A-Za-z_]\w*\s+[A-Za-z_]\w*\s*\(.*\)\s*"
)
"""A statement or declaration that may still need its semicolon."""
STARTS = re.compile(
    r"\s*(?:(?:always\w*|assign|wire|reg|logic|integer|genvar|generate|initial|end\w*|if|else|case[xz]?|for|begin"
    r"|function|task|localparam|parameter|input|output|inout)\b|[A-Za-z_][\w.]*(?:\[[^\]]*\])*\s*<?=(?!=))"
)
"""A line that cannot continue the statement before it."""
