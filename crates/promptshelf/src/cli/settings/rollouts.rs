//! The check of `[[rollout]]` of `server.toml`.

use std::time::Duration;

use super::{
    file::{ServerFile, is_channel},
    rollout_section::RolloutSection,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfiguredRollout {
    pub(crate) channel: String,
    pub(crate) target: String,
    pub(crate) percent: u8,
    pub(crate) steps: Option<Duration>,
    pub(crate) errors: Option<f64>,
    pub(crate) declined: Option<f64>,
    pub(crate) latency: Option<f64>,
}

pub(super) fn resolve(file: &mut ServerFile, sections: &[RolloutSection]) -> Vec<ConfiguredRollout> {
    let mut resolved: Vec<ConfiguredRollout> = Vec::new();
    for (index, rollout) in sections.iter().enumerate() {
        let RolloutSection { channel, to, percent, steps, stop } = rollout;
        for (key, name) in [("channel", channel), ("to", to)] {
            if !is_channel(name) {
                let found = file.rollout_error(index, key, format!("`{name}` is not the name of a channel"));
                found.help = Some("name a channel of the store that is served, such as `next`".to_owned());
            }
        }
        if channel == to {
            let message = format!("expected another channel than `{channel}`");
            file.rollout_error(index, "to", message);
        }
        if resolved.iter().any(|other| other.channel == *channel) {
            let message = format!("another rollout divides the callers of `{channel}` already");
            file.rollout_error(index, "channel", message);
        }
        resolved.push(ConfiguredRollout {
            channel: channel.clone(),
            target: to.clone(),
            percent: u8::try_from(percent.0).unwrap_or(100),
            steps: steps.as_ref().map(|steps| steps.0),
            errors: stop.errors.map(|factor| factor.0),
            declined: stop.declined.map(|factor| factor.0),
            latency: stop.latency.map(|factor| factor.0),
        });
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<ConfiguredRollout>, Vec<String>) {
        let mut file = ServerFile::new(None, text);
        let written = file.read();
        let rollouts = resolve(&mut file, &written.rollout.0);
        (rollouts, file.found().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn rollout_of_the_guide_is_read() {
        let (rollouts, found) = read(
            "[[rollout]]\nchannel = \"production\"\nto = \"next\"\npercent = 10\nsteps = \"1h\"\n\
             stop = { errors = \"2x\", declined = \"1.5x\" }\n",
        );
        assert_eq!(found, Vec::<String>::new());
        let expected = ConfiguredRollout {
            channel: "production".to_owned(),
            target: "next".to_owned(),
            percent: 10,
            steps: Some(Duration::from_secs(3_600)),
            errors: Some(2.0),
            declined: Some(1.5),
            latency: None,
        };
        assert_eq!(rollouts, [expected]);
    }

    // req: S-201
    #[test]
    fn mistakes_are_named() {
        for (keys, expected) in [
            ("to = \"production\"\npercent = 1", "expected another channel than `production`"),
            ("to = \"sqlite:b.db#next\"\npercent = 1", "`sqlite:b.db#next` is not the name of a channel"),
            ("to = \"next\"\npercent = 101", "from 0 to 100"),
            ("to = \"next\"\npercent = -1", "from 0 to 100"),
            ("to = \"next\"", "percent"),
            ("to = \"next\"\npercent = 1\nstop = { errors = \"0.5x\" }", "from 1x to 100x"),
            ("to = \"next\"\npercent = 1\nstop = { errors = \"2\" }", "from 1x to 100x"),
            ("to = \"next\"\npercent = 1\nsteps = \"0s\"", "from 1s to 24h"),
        ] {
            let (_, found) = read(&format!("[[rollout]]\nchannel = \"production\"\n{keys}\n"));
            assert!(found.len() == 1 && found[0].contains(expected), "{keys}: {found:?}");
        }
        let twice = "[[rollout]]\nchannel = \"production\"\nto = \"a\"\npercent = 1\n";
        let (_, found) = read(&format!("{twice}{twice}"));
        assert!(found.len() == 1 && found[0].contains("another rollout divides"), "{found:?}");
    }
}
