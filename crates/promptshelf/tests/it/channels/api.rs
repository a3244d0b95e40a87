//! `serve` with the API of a store.

use super::Team;

// req: S-99
#[test]
fn api_without_sign_in_is_not_served_to_other_machines() {
    let team = Team::new();
    let words = ["serve", "sqlite:team.db", "--http", "0.0.0.0:0", "--allow-remote", "--api"];
    let stderr = team.fails("5", &words);
    assert!(stderr.contains("the API is on without sign-in"), "{stderr}");
}
