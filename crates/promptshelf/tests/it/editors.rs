//! Real editors with the configuration of the guide: `cargo xtask nightly --only editors` installs them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

const GUIDE: &str = include_str!("../../../../docs/guide/src/writing/editors.md");

/// The code block of the guide with this mark.
fn block(mark: &str) -> &'static str {
    let from = GUIDE.split_once(mark).expect("a block of the guide").1;
    from.split_once("```").expect("its end").0
}

const HELLO: &str = "---\ntitel: Hello\ndescription: Greets\narguments:\n  - name: who\n    description: Whom\n    requird: true\n---\nHi {{ who | uper }}!\n";
const CALLER: &str = "---\ndescription: Calls\narguments:\n  - name: name\n    description: A name\n    required: true\n---\n{{ prompt(\"hello\", who=name) }}\n";

fn library() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (path, text) in [("hello.md", HELLO), ("caller.md", CALLER), ("promptshelf.toml", "")] {
        fs::write(folder.path().join(path), text).expect("a file");
    }
    folder
}

/// Runs an editor with the program on its PATH, and returns what it printed.
fn run(editor: &str, folder: &Path, words: &[&str]) -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_promptshelf"));
    let path = std::env::var("PATH").unwrap_or_default();
    let around = program.parent().expect("a folder around it").display();
    let output = Command::new("timeout")
        .args(["60", editor])
        .args(words)
        .current_dir(folder)
        .env("PATH", format!("{around}:{path}"))
        .env("HOME", folder)
        .output()
        .expect("coreutils");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

const NEOVIM: &str = r#"
local function ask(method, more)
  local params = vim.tbl_extend("force", { textDocument = vim.lsp.util.make_text_document_params() }, more)
  local answers = vim.lsp.buf_request_sync(0, method, params, 20000) or {}
  for _, answer in pairs(answers) do
    if answer.error then error(answer.error.message) end
    return answer.result
  end
end
local function at(line, column) return { line = line, character = column } end
vim.wait(20000, function() return #vim.diagnostic.get(0) >= 3 end, 20)
for _, line in ipairs({ 1, 6, 8 }) do
  local range = { start = at(line, 0), ["end"] = at(line, 99) }
  local actions = ask("textDocument/codeAction", { range = range, context = { diagnostics = {}, only = { "quickfix" } } })
  assert(actions and actions[1], "no fix in line " .. line)
  vim.lsp.util.apply_workspace_edit(actions[1].edit, "utf-16")
end
vim.wait(20000, function() return #vim.diagnostic.get(0) == 0 end, 20)
local edit = ask("textDocument/rename", { position = at(8, 6), newName = "person" })
vim.lsp.util.apply_workspace_edit(edit, "utf-16")
vim.lsp.buf.formatting_sync(nil, 20000)
vim.cmd("wall")
print("left: " .. #vim.diagnostic.get(0))
vim.cmd("qall!")
"#;

#[test]
#[ignore = "needs Neovim: cargo xtask nightly --only editors"]
fn neovim_fixes_renames_and_formats() {
    let folder = library();
    fs::write(folder.path().join("init.lua"), block("```lua,neovim\n")).expect("a file");
    fs::write(folder.path().join("run.lua"), NEOVIM).expect("a file");
    let printed = run("nvim", folder.path(), &["--headless", "-u", "init.lua", "hello.md", "-c", "luafile run.lua"]);
    assert!(printed.contains("left: 0"), "{printed}");
    let hello = fs::read_to_string(folder.path().join("hello.md")).expect("a file");
    let expected = "---\ntitle: Hello\ndescription: Greets\narguments:\n  - name: person\n    description: Whom\n    required: true\n---\nHi {{ person | upper }}!\n";
    assert_eq!(hello, expected);
    let caller = fs::read_to_string(folder.path().join("caller.md")).expect("a file");
    assert!(caller.contains("prompt(\"hello\", person=name)"), "{caller}");
}

const EMACS: &str = r#"
(defun wait-until (is-true)
  (let ((left 400)) (while (and (> left 0) (not (funcall is-true))) (accept-process-output nil 0.05) (setq left (1- left)))))
(find-file "hello.md")
(call-interactively 'eglot)
(wait-until (lambda () (eglot-current-server)))
(flymake-mode 1)
(flymake-start)
(wait-until (lambda () (>= (length (flymake-diagnostics)) 3)))
(princ (format "found: %d\n" (length (flymake-diagnostics))))
;; The editor asks before it changes files that are not open.
(fset 'y-or-n-p (lambda (&rest _) t))
(goto-char (point-min)) (search-forward "who") (backward-char)
(eglot-rename "person")
(eglot-format-buffer)
(save-some-buffers t)
"#;

#[test]
#[ignore = "needs Emacs with eglot: cargo xtask nightly --only editors"]
fn emacs_finds_mistakes_and_renames() {
    let folder = library();
    fs::write(folder.path().join("init.el"), block("```elisp,emacs\n")).expect("a file");
    fs::write(folder.path().join("run.el"), EMACS).expect("a file");
    // The editor takes a repository for a project.
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(folder.path()).status();
    assert!(made.is_ok_and(|made| made.success()));
    let words = ["--batch", "-f", "package-initialize", "-l", "init.el", "-l", "run.el"];
    let printed = run("emacs", folder.path(), &words);
    assert!(printed.contains("found: 3"), "{printed}");
    let caller = fs::read_to_string(folder.path().join("caller.md")).expect("a file");
    assert!(caller.contains("person=name"), "{caller}\n{printed}");
}
