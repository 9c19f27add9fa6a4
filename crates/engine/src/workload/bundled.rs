//! The workloads that are compiled into the binary.

/// A bundled workload: its name and the files of its folder.
pub(crate) struct Bundled {
    pub(crate) name: &'static str,
    pub(crate) toml: &'static str,
    pub(crate) sql: &'static [(&'static str, &'static str)],
}

impl Bundled {
    /// One of its SQL files.
    pub(crate) fn read(&self, name: &str) -> std::io::Result<String> {
        let sql = self.sql.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
        sql.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
    }
}

macro_rules! bundle {
    ($name:literal, $($sql:literal),*) => {
        Bundled {
            name: $name,
            toml: include_str!(concat!("../../../../workloads/", $name, "/workload.toml")),
            sql: &[$(($sql, include_str!(concat!("../../../../workloads/", $name, "/", $sql)))),*],
        }
    };
}

pub(crate) const BUNDLED: &[Bundled] = &[
    bundle!("coffee", "q1.sql", "q2_sold.sql", "q2_profit.sql", "q3.sql", "q4.sql"),
    bundle!("steam", "q1.sql", "q2.sql", "q3.sql", "q4.sql", "q5.sql"),
    bundle!("books", "q1.sql", "q2.sql", "q3.sql", "q4.sql", "q5.sql"),
];
