class Promptshelf < Formula
  desc "Model Context Protocol prompt server"
  homepage "https://github.com/promptshelf/promptshelf"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]
@SYSTEMS@
  def install
    bin.install "promptshelf"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/promptshelf.bash" => "promptshelf"
    fish_completion.install "completions/promptshelf.fish"
    zsh_completion.install "completions/_promptshelf"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/promptshelf --version")
  end
end
