//! Words of which games and their pages are made.

pub(super) const NAME_ADJECTIVES: &[&str] = &[
    "Galactic", "Lost", "Silent", "Crimson", "Tiny", "Endless", "Frozen", "Hidden", "Iron", "Lunar", "Mad", "Neon",
    "Pixel", "Rusty", "Sacred", "Twisted", "Wild", "Broken", "Cosmic", "Dark", "Electric", "Forgotten", "Golden",
    "Hollow", "Infinite", "Jolly", "Lazy", "Mystic", "Naughty", "Quantum", "Royal", "Super", "Toxic", "Velvet",
];
pub(super) const NAME_NOUNS: &[&str] = &[
    "Bowling", "Bandit", "Project", "Tower", "Dungeon", "Knight", "Robot", "Garden", "Racer", "Wizard", "Train",
    "Empire", "Kitchen", "Sniper", "Farm", "Puzzle", "Dragon", "Pirate", "Zombie", "Hotel", "Circus", "Escape",
    "Factory", "Island", "Jungle", "Kingdom", "Legend", "Mech", "Ninja", "Odyssey", "Planet", "Quest", "Runner",
    "Saga", "Tactics", "Universe", "Vikings", "Warfare", "Simulator", "Chronicles",
];
pub(super) const NAME_PLACES: &[&str] = &[
    "Rome", "Mars", "Avalon", "Painland", "Warsaw", "Atlantis", "the North", "the Deep", "Elyria", "Kyoto", "Andromeda",
    "the Abyss", "Olympus", "Nowhere", "Arkadia", "the Void", "Prague", "Valhalla",
];
pub(super) const FOREIGN_NAMES: &[&str] = &[
    "溪风谷之战", "进击的猫", "忍者の森", "星の記憶", "두 번째 왕국", "Сталь и Пепел", "Крепость Зимы", "Château Noir",
    "Überlebt", "El Último Tren", "Campeão da Rua", "Łowca Cieni", "Gölge Savaşı",
];
pub(super) const ODD_NAMES: &[&str] = &[
    "Run, Robot, Run!", "\"Hello, World!\"", "12 is Better Than 6 Again", "!Anyway!", "$1 Ride", "Who's That Ghost?",
    "Don't Look, Don't Touch", "A \"Simple\" Game", "0°N 0°W", "Cats & Dogs & Cats", "(NO)PATIENCE", "Five, Six, Seven",
];
pub(super) const ENDINGS: &[&str] = &["™", "®", " II", " III", " Playtest", " VR", " - Deluxe Edition", " 2077", ": Remastered", " Demo"];

pub(super) const MONTHS: &[&str] =
    &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
pub(super) const LANGUAGES: &[&str] = &[
    "French", "Italian", "German", "Spanish - Spain", "Japanese", "Korean", "Polish", "Portuguese - Brazil", "Russian",
    "Simplified Chinese", "Traditional Chinese", "Turkish", "Danish", "Ukrainian",
];
pub(super) const CATEGORIES: &[&str] = &[
    "Single-player", "Multi-player", "PvP", "Online PvP", "Co-op", "Online Co-op", "Shared/Split Screen",
    "Steam Achievements", "Full controller support", "Steam Trading Cards", "Steam Cloud", "Steam Leaderboards",
    "Partial Controller Support", "Valve Anti-Cheat enabled",
];
pub(super) const TAGS: &[&str] = &[
    "Indie", "Action", "Casual", "Pixel Graphics", "2D", "Retro", "Arcade", "Puzzle", "Singleplayer", "Story Rich",
    "FPS", "Shooter", "Survival Horror", "Atmospheric", "Tower Defense", "Rogue-lite", "Great Soundtrack", "Difficult",
    "Multiplayer", "Zombies", "1990's", "Turn-Based Combat", "Bowling", "Female Protagonist", "e-sports",
];
pub(super) const OWNERS: &[&str] = &[
    "10000000 - 20000000", "5000000 - 10000000", "2000000 - 5000000", "1000000 - 2000000", "500000 - 1000000",
    "200000 - 500000", "100000 - 200000", "50000 - 100000", "20000 - 50000", "0 - 20000",
];
pub(super) const STUDIOS: &[&str] =
    &["Games", "Studio", "Interactive", "Entertainment", "Software", "Works", "LLC", "Co., Ltd.", "GmbH", "S.A."];
pub(super) const PRICES: &[&str] =
    &["0.0", "0.0", "0.59", "0.99", "1.99", "2.99", "4.99", "5.99", "9.99", "10.99", "14.99", "19.99", "23.99", "59.99"];
pub(super) const NOTES: &[&str] = &[
    "Includes intense violence and blood.", "This Game may contain content not appropriate for all ages, or may not be appropriate for viewing at work.",
    "Mild language, \"cartoon\" violence", "Alcohol references\nPartial nudity",
];
