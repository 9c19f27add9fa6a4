#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use super::*;

const ALONE: &str = "name = \"a\"\nbroker = \"amqp://b\"\nkey-file = \"secret\"\n[[machine]]\nname = \"m\"\naddress = \"127.0.0.1\"\n\
                     [[supervisor]]\nid = 1\nmachine = \"m\"\nlisten = \"127.0.0.1:7501\"\n";

#[test]
fn a_home_is_made_once_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::create(dir.path()).unwrap();
    assert_eq!(Home::create(dir.path()).unwrap().id(), home.id());
    assert!(matches!(Home::open(dir.path()), Err(Error::NoCluster { .. })), "nobody has described it yet");
    assert!(matches!(Home::open(&dir.path().join("nowhere")), Err(Error::NoCluster { .. })));
    let config = Config::parse(&ALONE.replace("secret", "key"), "a").unwrap();
    home.write_config(&config).unwrap();
    let again = Home::find(Some(dir.path())).unwrap();
    assert_eq!((again.id(), again.config().unwrap()), (home.id(), config.clone()));
    assert!(again.key(&config).is_ok());
    let mode = |file: &str| std::fs::metadata(dir.path().join(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("key"), mode("cluster.toml")), (0o600, 0o600), "both are secret");
    std::fs::write(dir.path().join("id"), "xyz").unwrap();
    assert!(matches!(Home::open(dir.path()), Err(Error::Damaged { .. })));
    std::fs::remove_file(dir.path().join("id")).unwrap();
    assert_eq!(*Home::open(dir.path()).unwrap().id(), ClusterId::of(&again.key(&config).unwrap().for_heartbeats()));
}

#[test]
fn only_one_brings_it_up_and_a_name_has_one_holder() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::create(dir.path()).unwrap();
    let up = home.lock_up().unwrap();
    assert!(up.is_some() && home.lock_up().unwrap().is_none());
    drop(up);
    assert!(home.lock_up().unwrap().is_some());
    let name: ProcessName = "supervisor-1".parse().unwrap();
    assert_eq!(home.identity_holder(&name), None);
    let held = home.hold_identity(&name).unwrap();
    assert!(held.is_some() && home.hold_identity(&name).unwrap().is_none());
    assert_eq!(home.identity_holder(&name), Some(std::process::id()));
    drop(held);
    assert_eq!(home.identity_holder(&name), None);
}

#[test]
fn machines_that_share_a_key_agree_on_the_id() {
    let dir = tempfile::tempdir().unwrap();
    let (file, key) = (dir.path().join("my.toml"), dir.path().join("secret"));
    std::fs::write(&file, ALONE).unwrap();
    let alone = Config::read(&file).unwrap();
    let mut home = Home::create(&dir.path().join("one")).unwrap();
    home.adopt(&file, &alone, &key).unwrap();
    assert!(home.key(&alone).is_ok(), "a machine alone makes its own key");
    let two = format!("{ALONE}[[machine]]\nname = \"n\"\naddress = \"127.0.0.2\"\n");
    std::fs::write(&file, two).unwrap();
    let both = Config::read(&file).unwrap();
    let mut homes = ["one", "two"].map(|name| Home::create(&dir.path().join(name)).unwrap());
    assert!(matches!(homes[0].adopt(&file, &both, &key), Err(Error::NoKey { .. })));
    Key::create(&key).unwrap();
    for home in &mut homes {
        home.adopt(&file, &both, &key).unwrap();
        assert_eq!(Home::open(home.dir()).unwrap().id(), home.id());
    }
    assert_eq!(homes[0].id(), homes[1].id());
}
