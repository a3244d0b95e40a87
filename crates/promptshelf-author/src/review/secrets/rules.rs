//! The patterns of secrets, one kind on each line.
//!
//! A rule is added when a provider gives its secrets a recognizable prefix. Each sample is invented, and split so
//! that this file itself contains no match.

pub(super) struct Rule {
    pub(super) what: &'static str,
    /// A regular expression. The group `secret` is the part to redact; without it, the whole match is.
    pub(super) pattern: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "the rule's own test reads it"))]
    pub(super) sample: &'static [&'static str],
}

macro_rules! rules {
    ($($what:literal, $pattern:literal, $sample:expr;)+) => {
        pub(super) const RULES: &[Rule] =
            &[$(Rule { what: $what, pattern: $pattern, sample: &$sample },)+];
    };
}

rules! {
    "a private key", r"(?-u)-----BEGIN (?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----", ["-----BEGIN RSA PRI", "VATE KEY-----"];
    "an AWS access key", r"(?-u)\b(?:AKIA|ASIA)[A-Z2-7]{16}\b", ["AKI", "AZ3MHTQ6XWPL2RK7V"];
    "an OpenAI key", r"(?-u)\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_]{12,}[A-Za-z0-9_-]{20,}", ["sk-", "proj-q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta"];
    "an Anthropic key", r"(?-u)\bsk-ant-[a-z0-9]+-[A-Za-z0-9_-]{24,}", ["sk-", "ant-api03-q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7"];
    "a GitHub token", r"(?-u)\bgh[pousr]_[A-Za-z0-9]{36,}\b", ["gh", "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"];
    "a fine-grained GitHub token", r"(?-u)\bgithub_pat_[A-Za-z0-9_]{40,}\b", ["github", "_pat_11ABCDEFG0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"];
    "a GitLab token", r"(?-u)\bgl(?:pat|rt|dt|cbt)-[A-Za-z0-9_-]{20,}", ["glp", "at-q7Zr2Mx9Lc4Vt8Wb1Ny6"];
    "a Slack token", r"(?-u)\bxox[abeprs]-[A-Za-z0-9-]{16,}", ["xox", "b-27182818284-q7Zr2Mx9Lc4Vt8Wb"];
    "the address of a Slack webhook", r"(?-u)hooks\.slack\.com/services/T[A-Za-z0-9_]+/B[A-Za-z0-9_]+/(?P<secret>[A-Za-z0-9_]{16,})", ["hooks.slack", ".com/services/T02ABCDEF/B03ABCDEF/q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3H"];
    "the address of a Discord webhook", r"(?-u)discord(?:app)?\.com/api/webhooks/[0-9]+/(?P<secret>[A-Za-z0-9_-]{40,})", ["discord.com/api/web", "hooks/271828182845/q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta2Ub9Vc4"];
    "a live Stripe key", r"(?-u)\b[sr]k_live_[A-Za-z0-9]{20,}\b", ["sk_l", "ive_q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3H"];
    "a Google API key", r"(?-u)\bAIza[A-Za-z0-9_-]{35}", ["AI", "zaSyq7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta"];
    "a Google client secret", r"(?-u)\bGOCSPX-[A-Za-z0-9_-]{24,}", ["GOC", "SPX-q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd"];
    "an npm token", r"(?-u)\bnpm_[A-Za-z0-9]{36}\b", ["np", "m_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"];
    "a PyPI token", r"(?-u)\bpypi-AgEI[A-Za-z0-9_-]{40,}", ["py", "pi-AgEIcHlwaS5vcmcCJGq7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7"];
    "a Hugging Face token", r"(?-u)\bhf_[A-Za-z0-9]{30,}\b", ["h", "f_qZrMxLcVtWbNyKpHsJdGfTaUbVcXeQwErTy"];
    "a SendGrid key", r"(?-u)\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}", ["S", "G.q7Zr2Mx9Lc4Vt8Wb1Ny6.q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta2Ub"];
    "a Docker token", r"(?-u)\bdckr_[po]at_[A-Za-z0-9_-]{24,}", ["dckr", "_pat_q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5J"];
    "a DigitalOcean token", r"(?-u)\bdo[opr]_v1_[a-f0-9]{64}\b", ["do", "p_v1_3f786850e387550fdab836ed7e6dc8813f786850e387550fdab836ed7e6dc881"];
    "a token of a Telegram bot", r"(?-u)\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", ["271828182", ":AAq7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7T"];
    "the key of an Azure account", r"(?-u)AccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})", ["Account", "Key=q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta2Ub9Vc4q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta2Ub9Vc4=="];
    "a token of promptshelf", r"(?-u)\bpsk_[A-Za-z0-9_-]{32,}", ["ps", "k_q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta2Ub9V"];
    "an AWS secret key", r#"(?i-u)\baws_secret_access_key["']?\s{0,4}[:=]\s{0,4}["']?(?P<secret>[A-Za-z0-9+/]{40})\b"#, ["aws_secret_", "access_key = q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3Hs5Jd0Gf7Ta2Ub9Vc"];
    "a signed token (JWT)", r"(?-u)\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}", ["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiJhZGEifQx", ".q7Zr2Mx9Lc4Vt8Wb1Ny6Kp3H"];
    "an address with a password", r#"\b[a-z][a-z0-9+.-]{2,20}://[^\s:/@"'<>]{1,64}:(?P<secret>[^\s/@"'<>]{5,128})@[A-Za-z0-9.-]+"#, ["postgres", "://ada:q7Zr2Mx9@db.internal"];
    "a secret", r#"(?i-u)\b(?:api[_-]?key|secret[_-]?key|client[_-]?secret|access[_-]?token|auth[_-]?token|passw(?:or)?d)["']?\s{0,4}[:=]\s{0,4}["'](?P<secret>[A-Za-z0-9+/_.=-]{16,128})["']"#, ["api_", "key = \"q7Zr2Mx9Lc4Vt8Wb1Ny6\""];
}
