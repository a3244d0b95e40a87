//! The words of the template language. The engine, the check, editors and tests take them from here.

/// A function, filter, test, statement or operator.
#[derive(Clone, Copy, Debug)]
pub struct TemplateWord {
    /// The word.
    pub name: &'static str,
    /// What it is or does, in one sentence.
    pub about: &'static str,
    /// A template with it.
    pub example: &'static str,
    /// The text that the example gives; `None` if it depends on the library.
    pub result: Option<&'static str>,
}

use TemplateWord as Word;

impl TemplateWord {
    /// Returns the description, the example and its result as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Word { about, example, result, .. } = self;
        let result = result.map(|text| format!("\n\ngives\n\n````text\n{text}\n````")).unwrap_or_default();
        format!("{about}\n\n```jinja\n{example}\n```{result}")
    }
}

/// The words that templates can use in addition to arguments.
#[derive(Clone, Copy, Debug)]
pub struct TemplateWords {
    /// Functions, such as `attach`.
    pub functions: &'static [TemplateWord],
    /// Filters, such as `upper`.
    pub filters: &'static [TemplateWord],
    /// Tests (`x is …`), such as `defined`.
    pub tests: &'static [TemplateWord],
    /// Statements, such as `include`.
    pub statements: &'static [TemplateWord],
    /// Operators that are words, such as `and`.
    pub operators: &'static [TemplateWord],
}

impl TemplateWords {
    /// All words.
    pub const ALL: TemplateWords = TemplateWords {
        functions: FUNCTIONS,
        filters: FILTERS,
        tests: TESTS,
        statements: STATEMENTS,
        operators: OPERATORS,
    };

    /// Returns a word of one of the lists.
    #[must_use]
    pub fn find(words: &'static [TemplateWord], name: &str) -> Option<&'static TemplateWord> {
        words.iter().find(|word| word.name == name)
    }
}

/// Returns the names of words, and others.
pub(super) const fn names<const N: usize>(words: &[Word], others: &[&'static str]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = if at < words.len() { words[at].name } else { others[at - words.len()] };
        at += 1;
    }
    names
}

pub(super) const FUNCTIONS: &[Word] = &[
    Word {
        name: "role",
        about: "Starts a message of a role: `user` or `assistant`.",
        example: "{{ role(\"assistant\") }}",
        result: None,
    },
    Word {
        name: "attach",
        about: "An image, audio or a file of the library as a message of its own, by path or URI.",
        example: "{{ attach(\"chart.png\") }}",
        result: None,
    },
    Word {
        name: "link",
        about: "A link to a file of the library that the client may read, by path or URI.",
        example: "{{ link(\"style.md\") }}",
        result: None,
    },
    Word {
        name: "prompt",
        about: "The messages of another prompt, with values for its arguments.",
        example: "{{ prompt(\"greet\", who=name) }}",
        result: None,
    },
    Word {
        name: "range",
        about: "Numbers for a loop, up to an end that does not count.",
        example: "{{ range(1, 4) | join(\", \") }}",
        result: Some("1, 2, 3"),
    },
    Word { name: "dict", about: "A mapping.", example: "{{ dict(a=1) | json }}", result: Some("{\"a\":1}") },
    Word {
        name: "namespace",
        about: "Variables that a loop can set.",
        example: "{% set n = namespace(sum=0) %}{% for i in [1, 2] %}{% set n.sum = n.sum + i %}{% endfor %}{{ n.sum }}",
        result: Some("3"),
    },
];

pub(super) const FILTERS: &[Word] = &[
    Word { name: "abs", about: "The number without its sign.", example: "{{ -3 | abs }}", result: Some("3") },
    Word {
        name: "attr",
        about: "The value of a key, by its name.",
        example: "{{ {\"a\": 1} | attr(\"a\") }}",
        result: Some("1"),
    },
    Word {
        name: "batch",
        about: "Groups of items; the last one can be filled up.",
        example: "{{ [1, 2, 3] | batch(2) | list }}",
        result: Some("[[1,2],[3]]"),
    },
    Word {
        name: "bool",
        about: "Whether the value is true: not empty, not zero.",
        example: "{{ \"\" | bool }}",
        result: Some("false"),
    },
    Word {
        name: "capitalize",
        about: "The first letter large, all others small.",
        example: "{{ \"hELLO\" | capitalize }}",
        result: Some("Hello"),
    },
    Word {
        name: "chain",
        about: "Several lists one after the other, or mappings as one.",
        example: "{{ [1] | chain([2]) | list }}",
        result: Some("[1,2]"),
    },
    Word {
        name: "count",
        about: "The number of items or characters; another name of `length`.",
        example: "{{ [1, 2] | count }}",
        result: Some("2"),
    },
    Word {
        name: "d",
        about: "Another name of `default`.",
        example: "{{ nothing | d(\"none\") }}",
        result: Some("none"),
    },
    Word {
        name: "default",
        about: "The value, or another one where it is missing; `default(\"x\", true)` also replaces an empty one.",
        example: "{{ nothing | default(\"none\") }}",
        result: Some("none"),
    },
    Word {
        name: "dictsort",
        about: "The keys and values of a mapping, sorted by key.",
        example: "{{ {\"b\": 1, \"a\": 2} | dictsort }}",
        result: Some("[[\"a\",2],[\"b\",1]]"),
    },
    Word {
        name: "fence",
        about: "A Markdown code block, with a language if one is named, that the value cannot close.",
        example: "{{ \"x = 1\" | fence(\"python\") }}",
        result: Some("```python\nx = 1\n```"),
    },
    Word {
        name: "first",
        about: "The first item, or the first character.",
        example: "{{ [1, 2] | first }}",
        result: Some("1"),
    },
    Word {
        name: "float",
        about: "The value as a number with a fraction.",
        example: "{{ \"1.5\" | float }}",
        result: Some("1.5"),
    },
    Word {
        name: "groupby",
        about: "Items grouped by one of their keys.",
        example: "{% for group in [{\"t\": \"a\"}, {\"t\": \"b\"}] | groupby(\"t\") %}{{ group.grouper }} {% endfor %}",
        result: Some("a b "),
    },
    Word {
        name: "indent",
        about: "Spaces before every line but the first; `indent(2, true)` before the first, too.",
        example: "{{ \"a\\nb\" | indent(2) }}",
        result: Some("a\n  b"),
    },
    Word { name: "int", about: "The value as a whole number.", example: "{{ \"7\" | int }}", result: Some("7") },
    Word {
        name: "items",
        about: "The keys and values of a mapping, as pairs.",
        example: "{{ {\"a\": 1} | items }}",
        result: Some("[[\"a\",1]]"),
    },
    Word {
        name: "join",
        about: "Items as one text, with a text between them.",
        example: "{{ [\"a\", \"b\"] | join(\", \") }}",
        result: Some("a, b"),
    },
    Word {
        name: "json",
        about: "The value as JSON; `json(indent=2)` over several lines.",
        example: "{{ {\"a\": [1]} | json }}",
        result: Some("{\"a\":[1]}"),
    },
    Word {
        name: "last",
        about: "The last item, or the last character.",
        example: "{{ [1, 2] | last }}",
        result: Some("2"),
    },
    Word {
        name: "length",
        about: "The number of items or characters.",
        example: "{{ \"abc\" | length }}",
        result: Some("3"),
    },
    Word {
        name: "lines",
        about: "The lines of a text, as a list.",
        example: "{{ \"a\\nb\" | lines }}",
        result: Some("[\"a\",\"b\"]"),
    },
    Word {
        name: "list",
        about: "The items or characters, as a list.",
        example: "{{ \"ab\" | list }}",
        result: Some("[\"a\",\"b\"]"),
    },
    Word { name: "lower", about: "The text in small letters.", example: "{{ \"ABC\" | lower }}", result: Some("abc") },
    Word {
        name: "map",
        about: "Each item changed by a filter, or a key of each item.",
        example: "{{ [\"a\", \"b\"] | map(\"upper\") | join }}",
        result: Some("AB"),
    },
    Word { name: "max", about: "The largest item.", example: "{{ [1, 3, 2] | max }}", result: Some("3") },
    Word { name: "min", about: "The smallest item.", example: "{{ [3, 1, 2] | min }}", result: Some("1") },
    Word {
        name: "pprint",
        about: "The value as it is written in code, over several lines.",
        example: "{{ [1] | pprint }}",
        result: Some("[\n    1,\n]"),
    },
    Word {
        name: "quote",
        about: "A Markdown block quotation: each line after `> `.",
        example: "{{ \"a\\nb\" | quote }}",
        result: Some("> a\n> b"),
    },
    Word {
        name: "reject",
        about: "The items that fail a test.",
        example: "{{ [1, 2, 3] | reject(\"odd\") | list }}",
        result: Some("[2]"),
    },
    Word {
        name: "rejectattr",
        about: "The items one of whose keys fails a test.",
        example: "{{ [{\"n\": 1}, {\"n\": 2}] | rejectattr(\"n\", \"odd\") | map(attribute=\"n\") | list }}",
        result: Some("[2]"),
    },
    Word {
        name: "replace",
        about: "The text with one part replaced by another, everywhere.",
        example: "{{ \"a-b\" | replace(\"-\", \"+\") }}",
        result: Some("a+b"),
    },
    Word {
        name: "reverse",
        about: "The items or characters from the last to the first.",
        example: "{{ \"abc\" | reverse }}",
        result: Some("cba"),
    },
    Word {
        name: "round",
        about: "The number rounded, to whole numbers or to some digits.",
        example: "{{ 1.26 | round(1) }}",
        result: Some("1.3"),
    },
    Word {
        name: "select",
        about: "The items that pass a test.",
        example: "{{ [1, 2, 3] | select(\"odd\") | list }}",
        result: Some("[1,3]"),
    },
    Word {
        name: "selectattr",
        about: "The items one of whose keys passes a test.",
        example: "{{ [{\"n\": 1}, {\"n\": 2}] | selectattr(\"n\", \"odd\") | map(attribute=\"n\") | list }}",
        result: Some("[1]"),
    },
    Word {
        name: "slice",
        about: "Items in so many groups of about the same size.",
        example: "{{ [1, 2, 3] | slice(2) | list }}",
        result: Some("[[1,2],[3]]"),
    },
    Word {
        name: "sort",
        about: "The items in order; `sort(reverse=true)` from the largest.",
        example: "{{ [2, 1] | sort }}",
        result: Some("[1,2]"),
    },
    Word {
        name: "split",
        about: "The parts of a text between a separator, or between spaces.",
        example: "{{ \"a,b\" | split(\",\") | list }}",
        result: Some("[\"a\",\"b\"]"),
    },
    Word { name: "string", about: "The value as text.", example: "{{ 1 | string }}", result: Some("1") },
    Word { name: "sum", about: "The sum of the items.", example: "{{ [1, 2] | sum }}", result: Some("3") },
    Word {
        name: "title",
        about: "Each word with a large letter.",
        example: "{{ \"hello world\" | title }}",
        result: Some("Hello World"),
    },
    Word {
        name: "tojson",
        about: "The value as JSON; another name of `json`.",
        example: "{{ [1] | tojson }}",
        result: Some("[1]"),
    },
    Word {
        name: "trim",
        about: "The text without spaces and line breaks at both ends.",
        example: "{{ \"  a \" | trim }}",
        result: Some("a"),
    },
    Word {
        name: "unique",
        about: "Each item once.",
        example: "{{ [1, 1, 2] | unique | list }}",
        result: Some("[1,2]"),
    },
    Word {
        name: "upper",
        about: "The text in capital letters.",
        example: "{{ \"abc\" | upper }}",
        result: Some("ABC"),
    },
    Word {
        name: "urlencode",
        about: "The text as a part of a URL.",
        example: "{{ \"a b\" | urlencode }}",
        result: Some("a%20b"),
    },
    Word {
        name: "xml",
        about: "The value between XML tags that it cannot close.",
        example: "{{ \"hi\" | xml(\"message\") }}",
        result: Some("<message>\nhi\n</message>"),
    },
    Word {
        name: "zip",
        about: "Pairs of the items of two lists.",
        example: "{{ [1, 2] | zip([\"a\", \"b\"]) | list }}",
        result: Some("[[1,\"a\"],[2,\"b\"]]"),
    },
];

pub(super) const TESTS: &[Word] = &[
    Word {
        name: "boolean",
        about: "Whether the value is `true` or `false`.",
        example: "{{ true is boolean }}",
        result: Some("true"),
    },
    Word {
        name: "defined",
        about: "Whether there is a value: a left-out argument has none.",
        example: "{{ nothing is defined }}",
        result: Some("false"),
    },
    Word {
        name: "divisibleby",
        about: "Whether the number can be divided by another one.",
        example: "{{ 6 is divisibleby(3) }}",
        result: Some("true"),
    },
    Word {
        name: "endingwith",
        about: "Whether the text ends with another one.",
        example: "{{ \"a.rs\" is endingwith(\".rs\") }}",
        result: Some("true"),
    },
    Word {
        name: "eq",
        about: "Whether both values are equal; the same as `==`.",
        example: "{{ 1 is eq(1) }}",
        result: Some("true"),
    },
    Word {
        name: "equalto",
        about: "Whether both values are equal; the same as `==`.",
        example: "{{ 1 is equalto(1) }}",
        result: Some("true"),
    },
    Word { name: "even", about: "Whether the number is even.", example: "{{ 2 is even }}", result: Some("true") },
    Word {
        name: "false",
        about: "Whether the value is `false`.",
        example: "{{ false is false }}",
        result: Some("true"),
    },
    Word {
        name: "filter",
        about: "Whether a filter of this name exists.",
        example: "{{ \"upper\" is filter }}",
        result: Some("true"),
    },
    Word {
        name: "float",
        about: "Whether the value is a number with a fraction.",
        example: "{{ 1.5 is float }}",
        result: Some("true"),
    },
    Word {
        name: "ge",
        about: "Whether the value is greater or equal; the same as `>=`.",
        example: "{{ 2 is ge(1) }}",
        result: Some("true"),
    },
    Word {
        name: "greaterthan",
        about: "Whether the value is greater; the same as `>`.",
        example: "{{ 2 is greaterthan(1) }}",
        result: Some("true"),
    },
    Word {
        name: "gt",
        about: "Whether the value is greater; the same as `>`.",
        example: "{{ 2 is gt(1) }}",
        result: Some("true"),
    },
    Word {
        name: "in",
        about: "Whether a list, mapping or text contains the value.",
        example: "{{ \"a\" is in([\"a\", \"b\"]) }}",
        result: Some("true"),
    },
    Word {
        name: "int",
        about: "Whether the value is a whole number.",
        example: "{{ 1 is int }}",
        result: Some("true"),
    },
    Word {
        name: "integer",
        about: "Whether the value is a whole number.",
        example: "{{ 1 is integer }}",
        result: Some("true"),
    },
    Word {
        name: "iterable",
        about: "Whether a loop can go through the value.",
        example: "{{ [1] is iterable }}",
        result: Some("true"),
    },
    Word {
        name: "le",
        about: "Whether the value is less or equal; the same as `<=`.",
        example: "{{ 1 is le(2) }}",
        result: Some("true"),
    },
    Word {
        name: "lessthan",
        about: "Whether the value is less; the same as `<`.",
        example: "{{ 1 is lessthan(2) }}",
        result: Some("true"),
    },
    Word {
        name: "lower",
        about: "Whether all letters are small.",
        example: "{{ \"abc\" is lower }}",
        result: Some("true"),
    },
    Word {
        name: "lt",
        about: "Whether the value is less; the same as `<`.",
        example: "{{ 1 is lt(2) }}",
        result: Some("true"),
    },
    Word {
        name: "mapping",
        about: "Whether the value has keys.",
        example: "{{ {\"a\": 1} is mapping }}",
        result: Some("true"),
    },
    Word {
        name: "ne",
        about: "Whether the values differ; the same as `!=`.",
        example: "{{ 1 is ne(2) }}",
        result: Some("true"),
    },
    Word { name: "none", about: "Whether the value is `none`.", example: "{{ none is none }}", result: Some("true") },
    Word {
        name: "number",
        about: "Whether the value is a number.",
        example: "{{ 1 is number }}",
        result: Some("true"),
    },
    Word { name: "odd", about: "Whether the number is odd.", example: "{{ 1 is odd }}", result: Some("true") },
    Word {
        name: "sameas",
        about: "Whether both are the same value.",
        example: "{{ true is sameas(true) }}",
        result: Some("true"),
    },
    Word {
        name: "sequence",
        about: "Whether the value has items in an order.",
        example: "{{ [1] is sequence }}",
        result: Some("true"),
    },
    Word {
        name: "startingwith",
        about: "Whether the text starts with another one.",
        example: "{{ \"ab\" is startingwith(\"a\") }}",
        result: Some("true"),
    },
    Word {
        name: "string",
        about: "Whether the value is text.",
        example: "{{ \"a\" is string }}",
        result: Some("true"),
    },
    Word {
        name: "test",
        about: "Whether a test of this name exists.",
        example: "{{ \"odd\" is test }}",
        result: Some("true"),
    },
    Word { name: "true", about: "Whether the value is `true`.", example: "{{ true is true }}", result: Some("true") },
    Word {
        name: "undefined",
        about: "Whether there is no value.",
        example: "{{ nothing is undefined }}",
        result: Some("true"),
    },
    Word {
        name: "upper",
        about: "Whether all letters are capital.",
        example: "{{ \"ABC\" is upper }}",
        result: Some("true"),
    },
];

const STATEMENTS: &[Word] = &[
    Word {
        name: "if",
        about: "The text up to `endif` if a condition holds; otherwise that of `elif` or `else`, if there is one.",
        example: "{% if 2 > 1 %}yes{% else %}no{% endif %}",
        result: Some("yes"),
    },
    Word {
        name: "elif",
        about: "The text for another condition, if those before do not hold.",
        example: "{% if 1 > 2 %}a{% elif 2 > 1 %}b{% endif %}",
        result: Some("b"),
    },
    Word {
        name: "else",
        about: "The text if no condition before holds, or if a loop has no items.",
        example: "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
        result: Some("none"),
    },
    Word { name: "endif", about: "Ends `if`.", example: "{% if 2 > 1 %}yes{% endif %}", result: Some("yes") },
    Word {
        name: "for",
        about: "The text up to `endfor` once for each item of a list; `loop.index` is its number, from 1.",
        example: "{% for x in [\"a\", \"b\"] %}{{ loop.index }}{{ x }} {% endfor %}",
        result: Some("1a 2b "),
    },
    Word {
        name: "endfor",
        about: "Ends `for`.",
        example: "{% for x in [\"a\", \"b\"] %}{{ x }}{% endfor %}",
        result: Some("ab"),
    },
    Word {
        name: "break",
        about: "Ends a loop.",
        example: "{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}",
        result: Some("1"),
    },
    Word {
        name: "continue",
        about: "Goes on with the next item of a loop.",
        example: "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
        result: Some("13"),
    },
    Word {
        name: "set",
        about: "Gives a name to a value, or to the text up to `endset`.",
        example: "{% set x = \"a\" %}{{ x }}",
        result: Some("a"),
    },
    Word {
        name: "endset",
        about: "Ends the text of `set`.",
        example: "{% set x %}some text{% endset %}{{ x }}",
        result: Some("some text"),
    },
    Word {
        name: "with",
        about: "Names for values, up to `endwith`.",
        example: "{% with x = 1 %}{{ x }}{% endwith %}",
        result: Some("1"),
    },
    Word { name: "endwith", about: "Ends `with`.", example: "{% with x = 1 %}{{ x }}{% endwith %}", result: Some("1") },
    Word {
        name: "include",
        about: "The text of another file of the library, which uses the same arguments.",
        example: "{% include \"_shared/tone.md\" %}",
        result: None,
    },
    Word {
        name: "import",
        about: "The macros and variables of another file, under a name.",
        example: "{% import \"_macros.md\" as macros %}{{ macros.greet(\"you\") }}",
        result: None,
    },
    Word {
        name: "from",
        about: "Some macros or variables of another file.",
        example: "{% from \"_macros.md\" import greet %}{{ greet(\"you\") }}",
        result: None,
    },
    Word {
        name: "macro",
        about: "A text with parameters, which is called like a function.",
        example: "{% macro hi(who) %}Hi {{ who }}!{% endmacro %}{{ hi(\"you\") }}",
        result: Some("Hi you!"),
    },
    Word {
        name: "endmacro",
        about: "Ends `macro`.",
        example: "{% macro hi(who) %}Hi {{ who }}!{% endmacro %}{{ hi(\"you\") }}",
        result: Some("Hi you!"),
    },
    Word {
        name: "filter",
        about: "The text up to `endfilter`, changed by a filter.",
        example: "{% filter upper %}abc{% endfilter %}",
        result: Some("ABC"),
    },
    Word {
        name: "endfilter",
        about: "Ends `filter`.",
        example: "{% filter upper %}abc{% endfilter %}",
        result: Some("ABC"),
    },
    Word {
        name: "raw",
        about: "The text up to `endraw` as it is written, with its braces.",
        example: "{% raw %}{{ x }}{% endraw %}",
        result: Some("{{ x }}"),
    },
    Word { name: "endraw", about: "Ends `raw`.", example: "{% raw %}{{ x }}{% endraw %}", result: Some("{{ x }}") },
];

/// Words of conditions.
const OPERATORS: &[Word] = &[
    Word {
        name: "and",
        about: "Whether both conditions hold.",
        example: "{{ true and false }}",
        result: Some("false"),
    },
    Word {
        name: "or",
        about: "Whether one of the conditions holds; or the first value, unless it is empty.",
        example: "{{ \"\" or \"b\" }}",
        result: Some("b"),
    },
    Word { name: "not", about: "Whether a condition does not hold.", example: "{{ not false }}", result: Some("true") },
    Word {
        name: "in",
        about: "Whether a list, mapping or text contains a value; in `for`, the list of the items.",
        example: "{{ \"a\" in [\"a\", \"b\"] }}",
        result: Some("true"),
    },
    Word { name: "is", about: "Whether a value passes a test.", example: "{{ 3 is odd }}", result: Some("true") },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArgumentDefinition, Bindings, ContentBlock, Definitions, Part, PromptDefinition, check};

    #[test]
    fn examples_give_what_they_say() {
        let TemplateWords { functions, filters, tests, statements, operators } = TemplateWords::ALL;
        for word in [functions, filters, tests, statements, operators].into_iter().flatten() {
            let Some(expected) = word.result else { continue };
            let text = format!("{}|{{{{ nothing }}}}", word.example);
            let prompt = PromptDefinition::template("p", text).argument(ArgumentDefinition::new("nothing"));
            let checked = check(Definitions::from_iter([prompt]), None);
            let errors: Vec<_> = checked.diagnostics.iter().filter(|found| found.is_error()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", word.name);
            let prompt = checked.catalog.find("p").expect("it is valid");
            let parts = prompt.render(checked.catalog.render_context(), &Bindings::default()).expect(word.name);
            let [Part::Message(message)] = parts.as_slice() else { panic!("{parts:?}") };
            let ContentBlock::Text(given) = &message.content else { panic!("{message:?}") };
            assert_eq!(given.text.trim_end_matches('|'), expected, "{}", word.name);
        }
    }
}
