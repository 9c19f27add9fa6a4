//! Words of which books are made. The three title lists have lengths that are powers of two: see `titles`.

pub(super) const TITLE_ADJECTIVES: [&str; 64] = [
    "Silent", "Broken", "Golden", "Hidden", "Crimson", "Forgotten", "Secret", "Lonely", "Ancient", "Burning", "Little",
    "Distant", "Bitter", "Gentle", "Hollow", "Wandering", "Northern", "Southern", "Last", "First", "Second", "Dark",
    "Bright", "Wild", "Quiet", "Frozen", "Stolen", "Sacred", "Noble", "Restless", "Faithful", "Cruel", "Modern",
    "Practical", "Complete", "Essential", "Simple", "Perfect", "Private", "Public", "Royal", "Rural", "Urban", "Global",
    "Invisible", "Impossible", "Infinite", "Accidental", "Reluctant", "Honest", "Curious", "Clever", "Brave", "Old",
    "New", "Lost", "Found", "Young", "Long", "Short", "Blue", "White", "Black", "Scarlet",
];
pub(super) const TITLE_NOUNS: [&str; 128] = [
    "River", "Garden", "House", "Letter", "Island", "Mountain", "Winter", "Summer", "Stranger", "Daughter", "Soldier",
    "Teacher", "Mirror", "Shadow", "Promise", "Journey", "Harbor", "Lighthouse", "Orchard", "Cathedral", "Kitchen",
    "Bridge", "Forest", "Desert", "Empire", "Kingdom", "Crown", "Sword", "Rose", "Raven", "Wolf", "Horse", "Tiger",
    "Whale", "Storm", "Fire", "Stone", "Silver", "Glass", "Paper", "Machine", "Network", "Database", "Algorithm",
    "Theory", "History", "Atlas", "Dictionary", "Handbook", "Companion", "Guide", "Diary", "Journal", "Memoir",
    "Portrait", "Sketch", "Song", "Symphony", "Dance", "Game", "Puzzle", "Riddle", "Murder", "Mystery", "Trial",
    "Verdict", "Witness", "Detective", "Widow", "Orphan", "Twin", "Sister", "Brother", "Father", "Mother", "Bride",
    "Doctor", "Lawyer", "Pilot", "Captain", "Sailor", "Farmer", "Painter", "Poet", "Singer", "Dreamer", "Traveler",
    "Pilgrim", "Prophet", "Saint", "Sinner", "Angel", "Demon", "Ghost", "Dragon", "Witch", "Wizard", "Knight", "Queen",
    "King", "Prince", "Princess", "Thief", "Spy", "Rebel", "Refugee", "Immigrant", "Market", "Money", "Fortune",
    "Debt", "Gift", "Feast", "Bread", "Wine", "Coffee", "Tea", "Recipe", "Dream", "Memory", "Heart", "Soul", "Mind",
    "Body", "Time", "Light", "Truth", "Hope",
];
pub(super) const TITLE_PLACES: [&str; 64] = [
    "Lisbon", "Boston", "the North", "Alaska", "Paris", "Kyoto", "the Sea", "the Valley", "Texas", "Vienna", "Prague",
    "Dublin", "the Highlands", "Havana", "Bombay", "Cairo", "the Prairie", "London", "New Orleans", "Savannah",
    "the Andes", "Moscow", "Siberia", "the Nile", "Oxford", "Chicago", "the Bronx", "Montana", "Appalachia", "Naples",
    "Sicily", "Provence", "Normandy", "the Rhine", "Berlin", "Warsaw", "Budapest", "Istanbul", "Damascus", "Jerusalem",
    "Nairobi", "Cape Town", "Zanzibar", "Shanghai", "Saigon", "Manila", "Sydney", "Patagonia", "São Paulo", "Málaga",
    "Zürich", "Tromsø", "Kraków", "the Outback", "the Border", "Heaven", "the Underworld", "the Future", "Tomorrow",
    "the Middle Ages", "the Civil War", "Wall Street", "Main Street", "the Moon",
];

/// Categories and how common each is among the books that have one, per mille; the real ones, commas included.
pub(super) const CATEGORIES: [(&str, u16); 32] = [
    ("Fiction", 190),
    ("Juvenile Fiction", 66),
    ("Computers", 40),
    ("History", 90),
    ("Religion", 90),
    ("Biography & Autobiography", 72),
    ("Business & Economics", 56),
    ("Juvenile Nonfiction", 45),
    ("Social Science", 40),
    ("Cooking", 30),
    ("Sports & Recreation", 30),
    ("Body, Mind & Spirit", 27),
    ("Health & Fitness", 27),
    ("Philosophy", 24),
    ("Music", 22),
    ("Political Science", 20),
    ("Travel", 20),
    ("Science", 20),
    ("Psychology", 18),
    ("Foreign Language Study", 15),
    ("Poetry", 12),
    ("Art", 12),
    ("Crafts & Hobbies", 12),
    ("Comics & Graphic Novels", 10),
    ("Literary Criticism", 10),
    ("Mathematics", 10),
    ("Bible stories, English", 4),
    ("Holocaust, Jewish (1939-1945)", 3),
    ("Children's libraries", 3),
    ("Artists' materials", 3),
    ("Fiction in English", 5),
    ("Computers and civilization", 4),
];
pub(super) const FICTION: usize = 0;
pub(super) const COMPUTERS: usize = 2;

pub(super) const PUBLISHERS: &[&str] = &[
    "Simon and Schuster", "Harper Collins", "Penguin", "Routledge", "Springer Science & Business Media", "iUniverse",
    "John Wiley & Sons", "Cambridge University Press", "Bloomsbury Publishing", "St. Martin's Griffin", "Bantam",
    "O'Reilly Media, Inc.", "Yale University Press", "Lannoo Meulenhoff - Belgium", "ABC-CLIO", "Hachette UK",
    "Éditions du Seuil", "Random House Digital, Inc.", "Courier Corporation", "Read Books Ltd", "Macmillan",
];
pub(super) const SERIES: &[&str] = &[
    " (Modern Library)", " (Cross Cultural Perspectives on Women)", " (Dover Thrift Editions)", " (Mills & Boon Historical)",
    " (Book 2)", " (Large Print)", " (Avon)", ", Vol. 1", ", 3rd Edition",
];
pub(super) const SUBTITLES: &[&str] = &[
    ": A Novel", ": Religion, Identity and Cultural Difference", ": The Story of a Family", ": An Introduction",
    ": Insider Secrets for Getting a \"Big Envelope\"", ": Essays, Letters, and Poems", ": Tales of Müller & Søn",
    " - The Whales' Perspective", ": What You Need to Know",
];
/// Endings that make a book of Computers one about distributed things, in every case of the letters.
pub(super) const DISTRIBUTED: &[&str] = &[
    ": Principles of Distributed Systems", ": Distributed Databases in Practice", ": DISTRIBUTED COMPUTING EXPLAINED",
    " and Distributed Algorithms", ": A Guide to distributed, fault-tolerant programs",
];

/// Authors whose books come out again in decade after decade.
pub(super) const CLASSIC_AUTHORS: [&str; 12] = [
    "Eleanor Whitcombe", "Ambrose Thackwell", "Henrietta O'Dare", "Lucius Pemberton", "Cordelia Ashgrove",
    "Theodor Lindqvist", "Marguerite Delacour", "Jonas Ferreira", "Octavia Bramwell", "Silas Northcote",
    "Anastasia Volkova", "Edmund Harrowgate",
];
