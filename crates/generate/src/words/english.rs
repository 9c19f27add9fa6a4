//! English: reviews of games and of books, blurbs of books, pitches of games.

use super::Voice;

const INTENSIFIERS: &[&str] = &[
    "really", "very", "absolutely", "truly", "quite", "pretty", "surprisingly", "extremely", "incredibly", "so",
    "rather", "totally",
];
const GOOD: &[&str] = &[
    "great", "good", "excellent", "wonderful", "amazing", "brilliant", "beautiful", "fantastic", "fun", "impressive",
    "enjoyable", "charming", "clever", "memorable", "delightful", "perfect", "superb", "lovely", "interesting",
    "fascinating", "outstanding", "awesome", "polished", "satisfying", "engaging", "refreshing",
];
const BAD: &[&str] = &[
    "bad", "boring", "terrible", "awful", "horrible", "disappointing", "poor", "dull", "annoying", "frustrating",
    "weak", "shallow", "lazy", "tedious", "pointless", "mediocre", "ugly", "stupid", "confusing", "bland", "sloppy",
    "repetitive", "predictable", "unfinished", "ridiculous",
];
const PRAISE: &[&str] = &[
    "%g", "%g", "%i %g", "%i %g", "%g and %g", "%g, %g and never %b", "not %b at all", "anything but %b",
    "much better than I expected", "one of the best I have ever seen", "worth every minute", "simply %g", "not too %b",
];
const BLAME: &[&str] = &[
    "%b", "%b", "%i %b", "%i %b", "%b and %b", "not %g", "not very %g", "not even %g", "never %g", "far from %g",
    "the worst part of it", "a waste of time", "nowhere near as %g as people say", "%b, %b and just %b", "hardly %g",
];

/// Reviews of games.
pub(crate) const GAMES: Voice = Voice {
    subjects: &[
        "the combat", "the story", "the soundtrack", "the gameplay", "the multiplayer", "the level design",
        "the campaign", "the art style", "the community", "the voice acting", "the crafting", "the AI", "the tutorial",
        "the controller support", "the map", "the final boss", "the early game", "the latest update", "the physics",
        "the interface", "the difficulty", "the atmosphere", "the dialogue", "the matchmaking",
    ],
    kinds: &["game", "game", "game", "title", "indie game", "sequel", "port", "shooter", "sandbox", "expansion"],
    praise: PRAISE,
    blame: BLAME,
    good: GOOD,
    bad: BAD,
    intensifiers: INTENSIFIERS,
    sentences: [
        &[
            "%s is %p.", "%s is %p.", "%s is %p and %s is %p.", "I love this %k, %s is %p!", "this %k is %p.",
            "Honestly, %s is %p.", "I was hooked from the first hour because %s is %p.", "If you like this kind of %k, you will love it.",
            "Definitely worth the price, especially on sale.", "My friends and I had a %g time with this %k.",
            "The developers listen to the players, which is %p.", "10/10 would play again.",
            "I don't regret buying it, %s is %p.", "+ %s is %p", "I have played for many hours and %s is still %p.",
            "You can't go wrong with this one: %g, %g and %g.", "Highly recommended to everyone who enjoys a %g %k.",
            "It isn't %b like the last one, it is %p.", "What a %g %k!", "Even after a hundred hours %s is %p.",
        ],
        &[
            "I bought it during the summer sale.", "You start in a small village and work your way up.",
            "I play with a controller on an older machine.", "There are four classes to choose from.",
            "A round takes about twenty minutes.", "I have not finished the campaign yet.",
            "The settings menu has the usual options.", "It runs at sixty frames per second on my computer.",
            "My brother plays it on the other account.", "The servers are located in Europe and America.",
            "You collect wood and stone, then you build a base.", "I got it in a bundle with three others.",
            "There is a day and night cycle.", "The patch notes mention a new map.", "I will update this review later.",
            "You need about ten gigabytes of disk space.", "It plays like the first one with another setting.",
            "Press F to open the door.",
        ],
        &[
            "%s is %n.", "%s is %n.", "%s is %n and %s is %n.", "this %k is %n.", "I wanted to like this %k but %s is %n.",
            "Don't buy this, %s is %n.", "It crashes every time I open the map, which is %n.",
            "I asked for a refund after an hour because %s is %n.", "Sadly, %s is %n.", "- %s is %n",
            "The developers abandoned it and that is %n.", "Full of bugs, %b menus and %b performance.",
            "I can't recommend this %k to anyone.", "Save your money, %s is %n.", "What a %b %k.",
            "Hackers everywhere and nobody cares, the servers are %n.", "It was %g once, now %s is %n.",
            "I regret buying it.", "After twenty hours %s is still %n.", "It is not %g, not even %g enough for the price.",
        ],
    ],
    exclamations: [
        &[
            "Great game!", "10/10", "Love it.", "Best %k ever!", "%g %k", "so much fun", "%i %g!", "Good %k, buy it.",
            "not bad at all", "worth it", "I like it a lot", "GG, %g game",
        ],
        &["it is a game", "I played it.", "still waiting for the update", "ok", "it's a %k", "see the title"],
        &[
            "do not buy", "%b %k", "Waste of money.", "%i %b.", "not worth it", "I want a refund", "Not very %g.",
            "crashes all the time", "worst %k ever", "just %b", "unplayable",
        ],
    ],
    spaced: true,
};

/// Reviews of books.
pub(crate) const BOOKS: Voice = Voice {
    subjects: &[
        "the plot", "the ending", "the writing", "the author's style", "the main character", "the research",
        "the first chapter", "the dialogue", "the pacing", "the translation", "the binding", "the index",
        "the illustrations", "the world", "the argument", "the love story", "the last part", "the prose", "the humor",
        "the history behind it", "the second half", "the narrator",
    ],
    kinds: &["book", "book", "book", "novel", "story", "volume", "edition", "guide", "read", "series"],
    praise: PRAISE,
    blame: BLAME,
    good: GOOD,
    bad: BAD,
    intensifiers: INTENSIFIERS,
    sentences: [
        &[
            "%s is %p.", "%s is %p.", "%s is %p, and %s is %p.", "I could not put this %k down.",
            "This is a %g %k that I will read again.", "I highly recommend this %k to anyone who loves a %g %k.",
            "From the first page to the last, %s is %p.", "My children loved it as much as I did.",
            "It made me laugh and it made me cry, a truly %g %k.", "I bought copies for all my friends.",
            "The author has a gift: %s is %p.", "Few writers make history this %g.", "I learned more from this %k than in school, it is %p.",
            "I didn't expect to like it, but %s is %p.", "Five stars are not enough for such a %g %k.",
            "A %g, %g %k with a lot of heart.", "I was never bored; %s is %p.",
        ],
        &[
            "The book has about three hundred pages.", "I read it on the train to work.",
            "The story takes place in a small town near the sea.", "It is the third part of the series.",
            "I borrowed this copy from the library.", "The chapters follow the years of the war.",
            "Our book club chose it for the month of May.", "The hero is a young lawyer from Boston.",
            "My edition is the paperback of 1998.", "The author also wrote about the same family in another volume.",
            "There are maps at the beginning and notes at the end.", "It begins with a letter and ends with a trial.",
            "I had to read this for a class on American literature.", "The second part deals with the economy.",
            "He leaves home at sixteen and sails to Lisbon.", "I gave the book to my sister when I was done.",
            "The recipes use ingredients that you find in any store.",
        ],
        &[
            "%s is %n.", "%s is %n.", "%s is %n, and %s is %n.", "I could not finish this %k.",
            "I wanted to like it, but %s is %n.", "Don't waste your money on this %k.", "This is a %b %k and %s is %n.",
            "The %k is full of errors, which is %n.", "I expected more from this author; %s is %n.",
            "After fifty pages I gave up because %s is %n.", "It is not a %g %k, it is %n.",
            "What a %b, %b mess.", "I have read worse, but not often: %s is %n.", "The hype is %n.",
            "Nothing happens for two hundred pages and %s is %n.", "I returned it the next day.",
        ],
    ],
    exclamations: [
        &[
            "%g %k", "A %g %k!", "Loved it", "One of the best", "A must read", "%i %g", "Highly recommended",
            "%g and %g", "Not %b at all", "Excellent resource, %g writing", "Five stars!", "A %g surprise",
        ],
        &["My thoughts on this %k", "For the classroom", "About the second edition", "A note for readers", "Review", "An overview"],
        &[
            "%b %k", "Disappointed", "Not very %g", "Waste of money", "A %b ending", "%i %b", "Save your money!",
            "Could have been %g", "Not what I expected, %b", "%b and %b",
        ],
    ],
    spaced: true,
};

/// Descriptions of books, as publishers write them.
pub(crate) const BLURBS: Voice = Voice {
    subjects: &[
        "the author", "this volume", "a young teacher", "the family", "an old friend", "this guide", "the detective",
        "a retired judge", "this classic study", "the collection",
    ],
    kinds: &["history", "portrait", "handbook", "novel", "account", "introduction", "survey", "memoir", "anthology"],
    praise: PRAISE,
    blame: BLAME,
    good: GOOD,
    bad: BAD,
    intensifiers: INTENSIFIERS,
    sentences: [
        &[
            "A %g %k of a forgotten time.", "\"A %g %k,\" wrote the Times.", "%s tells a %g and %g tale.",
            "Now in paperback, the %g %k that readers have asked for.", "It remains the most %g %k of its kind.",
        ],
        &[
            "%s follows the road from the harbor to the mountains.", "First published in London, it has never been out of print.",
            "%s covers the years between the wars.", "Includes an index, maps and a list of sources.",
            "%s returns to the village where it all began -- and finds a letter.",
            "Topics include: * planning * tools & materials * common questions", "%s looks at law, politics, art and money.",
            "When a stranger arrives, %s must choose between duty and love.", "With a new foreword and forty photographs.",
            "The term \"progress\" is at the heart of the debate.", "Step by step, %s explains what to do and why.",
        ],
        &["Nothing is what it seems in this %k.", "A dark secret threatens to destroy them all.", "%s faces a cruel choice."],
    ],
    exclamations: [&["A %g %k."], &["%s and the sea."], &["A %b secret."]],
    spaced: true,
};

/// What games say about themselves.
pub(crate) const PITCHES: Voice = Voice {
    subjects: &["your crew", "the kingdom", "a lone robot", "your village", "the last pilot", "the dungeon", "the forest"],
    kinds: &["adventure", "puzzle platformer", "roguelike", "simulator", "strategy game", "visual novel", "arena shooter"],
    praise: PRAISE,
    blame: BLAME,
    good: GOOD,
    bad: BAD,
    intensifiers: INTENSIFIERS,
    sentences: [
        &[
            "Enjoy a %g %k with a %g soundtrack!", "%s needs you in this %i %g %k.", "Critics call it \"%g\".",
            "Over 40 %g levels await.", "Unlock %g skins, weapons & pets.",
        ],
        &[
            "Key features: - 12 chapters - 3 endings - full controller support", "Explore, build, trade and defend.",
            "%s is lost between two worlds.", "Play alone or with up to four friends online.", "Every run is different.",
            "Choose one of six heroes and find out what happened to the old city.", "Gather resources during the day, survive the night.",
            "Made by two people in their spare time.", "<strong>Features</strong><br><ul><li>Crafting</li><li>Trading</li></ul>",
        ],
        &["Beware: the night is %b.", "No %b tutorials.", "%s is in danger and time is running out."],
    ],
    exclamations: [&["A %g %k."], &["A %k."], &["A %b night."]],
    spaced: true,
};
