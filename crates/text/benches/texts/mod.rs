//! Texts for the benchmarks: made up, always the same, of the kinds that the workloads hold.

/// Reviews of several lengths and languages.
pub(crate) const REVIEWS: [&str; 6] = [
    "Great game!",
    "I have played this for many hours and the combat is still not boring. The developers listen to the players, which is \
     one of the best things I have ever seen. It crashes every time I open the map, though.",
    "Este juego es una maravilla, pero el final me pareció demasiado corto y un poco aburrido.",
    "Das Spiel ist wirklich gut, aber es stürzt ständig ab und der Kundendienst antwortet nie.",
    "Игра очень хорошая, но слишком короткая.",
    "From the first page to the last, the argument is not too lazy; a truly fun volume with a lot of heart. I highly \
     recommend this edition to anyone who loves an engaging guide. The second part deals with the economy. After fifty \
     pages I gave up because the world is never impressive. It made me laugh and it made me cry, and the ending is \
     extremely satisfying! Don't waste your money on the other book :-(",
];

/// Lists as Python prints them.
pub(crate) const LISTS: [&str; 4] =
    ["['Computers']", "['Arno Puder', 'Kay Römer', 'Frank Pilhofer']", r#"["Nena O'Neill", 'George O"Neill']"#, "[]"];

/// Dates of publication.
pub(crate) const DATES: [&str; 5] = ["1996", "2005-01-01", "2000-10", "1996*", "Oct 21, 2008"];
