//! The memory of a stored prompt.

use std::sync::Arc;

use peak_alloc::PeakAlloc;
use promptshelf_core::{ArgumentDefinition, Body, Definitions, Origin, PromptDefinition, SourceText, check};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const PROMPTS: usize = 1_000;

/// Bytes per prompt, for the definition, its file's text and the catalog.
const BOUND: usize = 2_200;

/// A prompt file of 400 bytes with a name, a description and two arguments.
fn prompt(number: usize) -> PromptDefinition {
    let head = format!(
        "---\nname: listed-{number:05}\ndescription: A prompt that is listed with many others, {number}\narguments:\n  - name: topic\n    \
         description: The subject of the text\n    required: true\n  - name: tone\n    description: The tone of the text\n    \
         required: false\n---\n"
    );
    let body = "Write about {{ topic }}{% if tone %} and sound {{ tone }}{% endif %}, in three paragraphs that a busy \
                reader likes to read.\n";
    let text = format!("{head}{body}");
    let mut origin = Origin::new(SourceText::new(format!("part-000/{number}.md"), text.as_str()));
    for part in ["name", "description", "arguments"] {
        origin.spans.insert(part, 4..8);
    }
    for argument in 0..2 {
        origin.spans.insert(format!("arguments.{argument}"), 4..8);
        for key in ["name", "description", "required"] {
            origin.spans.insert(format!("arguments.{argument}.{key}"), 4..8);
        }
    }
    let range = head.len()..text.len();
    PromptDefinition::from_source(format!("listed-{number:05}"), Body::Template { range }, origin)
        .description(format!("A prompt that is listed with many others, {number}"))
        .argument(ArgumentDefinition::new("topic").description("The subject of the text").required())
        .argument(ArgumentDefinition::new("tone").description("The tone of the text"))
}

#[test]
fn small_prompt_takes_at_most_2200_bytes() {
    drop(check(Definitions::from_iter([prompt(0)]), None));
    let before = MEMORY.current_usage();
    let shrunk = |number| {
        let mut prompt = prompt(number);
        prompt.arguments.shrink_to_fit();
        Arc::new(prompt)
    };
    let prompts: Vec<Arc<PromptDefinition>> = (0..PROMPTS).map(shrunk).collect();
    let catalog = check(Definitions::from_iter(prompts.iter().cloned()), None).catalog;
    let each = MEMORY.current_usage().saturating_sub(before) / PROMPTS;
    assert_eq!(catalog.prompts().len(), PROMPTS);
    assert!(each <= BOUND, "a prompt takes {each} bytes");
}
